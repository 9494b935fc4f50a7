import FaultSupport
import Foundation
import LifelineTestSupport
import SessionCutSupport

/// One run of client, relay and server.
struct CutRun {
    let messageCount: Int
    let cutCount: Int
    let seed: UInt64
    let spoil: Spoil?
    /// The folder of the records.
    let folder: URL

    /// The time without progress after which the run is given up: far longer than any silence, even on a busy machine.
    private static let patience = Duration.seconds(60)

    /// The records contain the messages; this contains the other events.
    func run() async throws -> CutReport {
        var report = CutReport(messageCount: messageCount)
        let server = try LineProgram(
            product: "SessionCutServer",
            arguments("server") + (spoil.map { ["--spoil", $0.rawValue] } ?? [])
        )
        let relay: RelayProcess
        do {
            relay = try await RelayProcess.start(to: server)
        } catch {
            report.problems.append("\(error)")
            return report
        }
        let began = ContinuousClock.now
        let client = try LineProgram(product: "SessionCutClient", arguments("client") + ["--to", relay.endpoint])
        do {
            try await cut(relay, [client, server], &report)
            try await waitForEnd(of: client, relay)
            report.duration = .now - began
            for (program, name) in [(client, "client"), (server, "server"), (relay.program, "relay")] {
                let status = try await program.finish()
                if status != 0 { report.problems.append("The \(name) ended with status \(status).") }
            }
        } catch {
            report.duration = .now - began
            report.problems.append("\(error)")
            for program in [client, server, relay.program] {
                // If a program has already ended, that is reported elsewhere.
                try? program.signal(SIGKILL)
                try await program.waitForEnd()
            }
        }
        report.add(client: client.events, relay: relay.events)
        try write(client.events, as: "client")
        try write(relay.events, as: "relay")
        // A program that failed early has no record.
        if let server = try? CutRecord.entries(at: record("server")),
            let client = try? CutRecord.entries(at: record("client"))
        {
            report.tally = CutTally(of: messageCount, server: server, client: client)
        }
        return report
    }

    /// Cuts one connection after the other, and paces the messages so that they last as long as that.
    private func cut(_ relay: RelayProcess, _ senders: [LineProgram], _ report: inout CutReport) async throws {
        var random = SeededGenerator(seed: seed)
        var progress = Progress(self)
        // A part of the messages that become due with each cut, so that they exist.
        let share = messageCount * CutFlow.meanByteCount / (cutCount + 1)
        for number in 0..<cutCount {
            let cut = RelayCut.random(using: &random)
            // Some connections are cut while they open.
            let longest = Int.random(in: 0..<10, using: &random) == 0 ? CutReport.openingByteCount : share
            let bytes = Int.random(in: 1...max(longest, 1), using: &random)
            try relay.program.tell("cut \(cut.rawValue) \(bytes)")
            for sender in senders { try sender.tell("pace \(number + 1) \(cutCount + 1)") }
            while !(await relay.program.says(within: .seconds(1)) { $0.event == .cut }) {
                if senders.contains(where: \.hasFinished) {
                    throw FaultFailure("A program has ended before cut \(number + 1) of \(cutCount).")
                }
                try check(&progress, relay)
                // Perhaps only heartbeats are sent now.
                try relay.program.tell("now")
            }
            if cut == .kill { try await relay.restart() }
            report.cutCounts[cut, default: 0] += 1
            if (number + 1) % 100 == 0 {
                progress.update()
                let line =
                    "\(number + 1) cuts, \(progress.doneCount) of \(progress.wholeCount) entries in the records\n"
                FileHandle.standardError.write(Data(line.utf8))
            }
        }
        try relay.program.tell("pass")
        for sender in senders { try sender.tell("pace 1 1") }
    }

    private func waitForEnd(of client: LineProgram, _ relay: RelayProcess) async throws {
        var progress = Progress(self)
        while !client.hasFinished, !(await client.says(within: .seconds(1)) { $0.hasFinishedClient }) {
            try check(&progress, relay)
        }
    }

    private func check(_ progress: inout Progress, _ relay: RelayProcess) throws {
        if relay.program.isSilent { throw FaultFailure("The relay has ended by itself.") }
        progress.update()
        if progress.idleTime > CutRun.patience {
            throw FaultFailure("Nothing was processed for \(CutRun.patience).")
        }
    }

    private func arguments(_ name: String) -> [String] {
        ["--messages", "\(messageCount)", "--record", record(name)]
    }

    /// The events of a program, for debugging.
    private func write(_ events: [FaultEvent], as name: String) throws {
        let lines = events.map { $0.line + "\n" }.joined()
        try Data(lines.utf8).write(to: folder.appending(path: "\(name).events"))
    }

    fileprivate func record(_ name: String) -> String { folder.appending(path: "\(name).record").path }
}

/// The progress of the records.
private struct Progress {
    let wholeCount: Int
    private(set) var doneCount = 0
    private let records: [String]
    private var lastChange = ContinuousClock.now

    init(_ run: CutRun) {
        // Calls are in both records.
        wholeCount = run.messageCount + CutFlow.replies.count(of: run.messageCount)
        records = ["server", "client"].map(run.record)
        update()
    }

    var idleTime: Duration { .now - lastChange }

    mutating func update() {
        let count = records.map(CutRecord.count).reduce(0, +)
        if count != doneCount { lastChange = .now }
        doneCount = count
    }
}

extension LineProgram {
    /// The client is done, or has failed.
    fileprivate var hasFinished: Bool { isSilent || events.contains { $0.hasFinishedClient } }
}

extension FaultEvent {
    fileprivate var hasFinishedClient: Bool { event == .done || event == .ended }
}
