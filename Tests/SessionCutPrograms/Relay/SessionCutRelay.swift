import ArgumentParser
import FaultSupport
import LifelineTestSupport
import SessionCutSupport

/// The relay between client and server, which cuts their connections on command.
///
/// Commands: `cut HOW BYTES` is for the next connection: HOW is a `RelayCut`, and BYTES the number of bytes in both
/// directions together before the cut; `now` moves the cut to the next byte. `pass` passes everything from now on.
/// Connections wait until their plan is known. It ends with its input.
@main struct SessionCutRelay: AsyncParsableCommand {
    @Option(help: "The port to listen on.") var on: Int
    @Option(help: "The server's port.") var to: Int

    func run() async throws {
        let plan = RelayPlan()
        try await CuttingRelay.run(
            on: on,
            to: to,
            nextCut: { await plan.next() },
            observe: { event in
                switch event {
                case .accepted: FaultEvent(.accepted).print()
                case .cut(let cut): FaultEvent.cut("\(cut.kind)", after: cut.byteCount).print()
                case .ended(let cut):
                    FaultEvent.ended("before it was cut").print()
                    plan.takeBack(cut)
                }
            }
        ) { relay in
            FaultEvent.listening(on: "tcp://127.0.0.1:\(relay.port)").print()
            while let command = try await CommandLines.next() {
                switch (command.first, command.count) {
                case ("cut", 3):
                    guard let cut = RelayCut(rawValue: command[1]), let count = Int(command[2]) else { fallthrough }
                    plan.add(CuttingRelay.Cut(cut.kind, after: count))
                case ("now", 1): relay.hurry()
                case ("pass", 1): plan.finish()
                default: throw FaultFailure("The relay knows no command like \(command).")
                }
            }
            plan.finish()
        }
    }
}
