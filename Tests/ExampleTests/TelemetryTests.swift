#if Store
import Foundation
import GRDB
import LifelineClientTestSupport
import LifelineTestSupport
import Testing

@testable import TelemetryGateway

/// Examples/telemetry.
@Suite(.timeLimit(.minutes(3))) struct TelemetryTests {
    /// Twelve kills: of the gateway, of the collector, or of both, spread over all measurements.
    @Test func eachLineIsThereOnceHoweverOftenBothAreKilled() async throws {
        let lineCount = 1500
        var random = SeededGenerator(seed: 7)
        try await withTemporaryPath("place") { path in
            let place = TelemetryPlace(path: path, address: try TestPort.nextEndpoint())
            try place.append(lines: 1...(lineCount / 2))
            var (collector, gateway) = (try place.collector(), try place.gateway())
            for kill in 1...12 {
                let goal = lineCount * kill / 13
                try await untilAsync { await place.measurementCount() >= goal }
                // While both are gone, lines are added.
                if kill == 4 { try place.append(lines: (lineCount / 2 + 1)...lineCount) }
                let (killsCollector, killsGateway) = [(true, false), (false, true), (true, true)][kill % 3]
                if killsGateway { await gateway.kill() }
                // The other one has a moment more in which messages are under way.
                for _ in 0..<Int.random(in: 0..<200, using: &random) { await Task.yield() }
                if killsCollector { await collector.kill() }
                if killsCollector { collector = try place.collector() }
                if killsGateway { gateway = try place.gateway() }
            }
            // It may have come to the end of the file before the second half was there.
            let status = await gateway.end()
            #expect(status == 0, "\(gateway.errorText)")
            #expect(gateway.output.hasSuffix("The collector has all \(lineCount) lines.\n"), "\(gateway.output)")
            let summary = try await place.summary()
            #expect(summary == "cellar boiler: \(lineCount) measurements from 1.0 to \(lineCount).0\n")
            #expect(try await place.values() == (1...lineCount).map(Double.init))
            await collector.kill()
        }
    }

    @Test func aLineThatIsNoMeasurementIsToldOfAndLeftOut() async throws {
        try await withTemporaryPath("place") { path in
            let place = TelemetryPlace(path: path, address: try TestPort.nextEndpoint())
            try place.append("1 boiler 1\nboiler\n1 b\u{1b}[2J 1\n1 boiler nan\n2 boiler 2\n3 boil")
            let collector = try place.collector()
            let first = try place.gateway()
            #expect(await first.end() == 0)
            let complaints = first.errorText.split(separator: "\n").filter { $0.hasPrefix(path) }
            #expect(complaints == [2, 3, 4].map { "\(path).txt:\($0): no measurement" })
            #expect(try await place.summary() == "cellar boiler: 2 measurements from 1.0 to 2.0\n")
            // The rest of the last line.
            try place.append("er 3\n")
            #expect(await (try place.gateway()).end() == 0)
            #expect(try await place.values() == [1, 2, 3])
            await collector.kill()
        }
    }

    @Test func aFileIsReadFromAPlaceAndAsItGrows() async throws {
        try await withTemporaryPath("lines.txt") { path in
            try Data("one\ntwo\nthr".utf8).write(to: URL(filePath: path))
            var lines = try LineFile(path: path, from: FilePlace())
            #expect(try lines.next() == "one")
            let behindOne = lines.place
            #expect(behindOne == FilePlace(line: 1, offset: 4))
            #expect(try lines.next() == "two")
            #expect(try lines.next() == nil)
            #expect(lines.place == FilePlace(line: 2, offset: 8))
            let file = try FileHandle(forUpdating: URL(filePath: path))
            try file.seekToEnd()
            try file.write(contentsOf: Data("ee\n\n".utf8))
            #expect(try lines.next() == "three")
            #expect(try lines.next()?.isEmpty == true)
            #expect(try lines.next() == nil)
            var later = try LineFile(path: path, from: behindOne)
            #expect(try later.next() == "two" && later.place.line == 2)
            try file.write(contentsOf: Data(repeating: UInt8(ascii: "x"), count: 10_000))
            #expect(throws: LineFile.LineTooLong.self) { try lines.next() }
        }
    }

    @Test(arguments: [["--name", "a/b", "x"], ["--name", "", "x"], ["x"]]) func wrongUsageIs64(_ arguments: [String])
        async throws
    {
        let outcome = try await Program.product("TelemetryGateway", arguments).outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains("--help"), "\(outcome.errorText)")
    }
}

/// The files and the address of a gateway and a collector, which may be started again and again.
private struct TelemetryPlace: Sendable {
    let path: String
    let address: String

    private var database: String { path + ".sqlite" }

    func collector() throws -> ExampleProcess {
        let arguments = ["--on", address, "--database", database]
        return try ExampleProcess("TelemetryCollector", arguments, output: path + ".collector")
    }

    func gateway() throws -> ExampleProcess {
        let arguments = ["--name", "cellar", "--to", address, "--outbox", path + ".outbox", path + ".txt"]
        return try ExampleProcess("TelemetryGateway", arguments, output: path + ".gateway")
    }

    func summary() async throws -> String {
        let arguments = ["--summary", "--database", database]
        return String(decoding: try await Program.product("TelemetryCollector", arguments).run(), as: UTF8.self)
    }

    /// A line has its number for a value.
    func append(lines numbers: ClosedRange<Int>) throws {
        try append(numbers.map { "\(1_772_436_664 + $0) boiler \($0)\n" }.joined())
    }

    func append(_ text: String) throws {
        let descriptor = open(path + ".txt", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try file.write(contentsOf: Data(text.utf8))
    }

    /// 0 while there is no table.
    func measurementCount() async -> Int { (try? await values().count) ?? 0 }

    /// The measured values, in the order of the lines.
    func values() async throws -> [Double] {
        var configuration = Configuration()
        configuration.readonly = true
        return try await DatabaseQueue(path: database, configuration: configuration).read { db in
            try Double.fetchAll(db, sql: "SELECT value FROM measurements ORDER BY line")
        }
    }
}
#endif
