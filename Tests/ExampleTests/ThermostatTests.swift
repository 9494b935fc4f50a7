import Foundation
import LifelineClientTestSupport
import LifelineOlderFramings
import LifelineTestSupport
import Testing

@testable import Thermostat

/// Examples/thermostat.
@Suite(.timeLimit(.minutes(2))) struct ThermostatTests {
    @Test func theDeviceIsSilentAndIsSwitchedOff() async throws {
        try await withTemporaryPath("files") { path in
            let address = try TestPort.nextEndpoint()
            func start() throws -> ExampleProcess {
                try ExampleProcess("Thermostat", ["simulate", "--on", address], output: path + ".device")
            }
            var device = try start()
            let options = ["--to", address, "--target", "20", "--interval", "0.01"]
            let watch = try ExampleProcess("Thermostat", ["watch"] + options, output: path + ".watch")
            try await until { watch.errorText.contains("target reached: 20.0 °C\n") }
            #expect(watch.output.hasPrefix("18.0 °C\n18.5 °C\n19.0 °C\n19.5 °C\n20.0 °C\n"), "\(watch.output)")

            device.signal(SIGSTOP)
            try await until { watch.errorText.contains("heartbeatTimeout") }
            device.signal(SIGCONT)
            let temperatureCount = watch.output.utf8.count
            try await until { watch.output.utf8.count > temperatureCount }
            // It has kept its target, as it was only silent.
            #expect(watch.output.matches(of: /18\.0/).count == 1)

            await device.kill()
            device = try start()
            try await until { watch.errorText.matches(of: /target reached/).count == 2 }
            #expect(watch.output.matches(of: /18\.0/).count == 2, "\(watch.output)")
            await watch.kill()
            await device.kill()
        }
    }

    @Test func aTargetThatTheDeviceRefusesIsAFailure() async throws {
        try await withTemporaryPath("files") { path in
            let address = try TestPort.nextEndpoint()
            let device = try ExampleProcess("Thermostat", ["simulate", "--on", address], output: path)
            let arguments = ["watch", "--to", address, "--target", "31"]
            let outcome = try await Program.product("Thermostat", arguments).outcome()
            #expect(outcome.status == 1)
            #expect(outcome.errorText.contains("refuses the target 31.0 °C: status 2"), "\(outcome.errorText)")
            await device.kill()
        }
    }

    @Test func theRoomFollowsItsTarget() async throws {
        let room = Room()
        func ask(_ url: UInt32, _ content: [UInt8] = []) async throws -> [FixedHeaderResponse] {
            try await room.responses(to: FixedHeaderRequest(url: url, serial: 0x401, content: content))
        }
        let unset = try await ask(Manual.temperature)
        #expect(unset.count == 1 && unset[0].status == Manual.Status.noTarget)
        #expect(Temperature(unset[0].content) == Temperature(hundredths: 1800))
        for content in [[], [1], Temperature(hundredths: 3001).content, Temperature(hundredths: -1).content] {
            #expect(try await ask(Manual.setTarget, content).map(\.status) == [Manual.Status.outOfRange])
        }
        #expect(try await ask(Manual.setTarget, Temperature(hundredths: 1730).content).map(\.status) == [0])
        #expect(try await ask(Manual.temperature).map(\.content) == [Temperature(hundredths: 1750).content])
        let reached = try await ask(Manual.temperature)
        #expect(reached.map(\.isPush) == [false, true])
        #expect(reached.map(\.content) == Array(repeating: Temperature(hundredths: 1730).content, count: 2))
        #expect(try await ask(Manual.temperature).count == 1)
        #expect(try await ask(0x999).map(\.status) == [Manual.Status.unknownRequest])
    }

    @Test func aTemperatureIsFourBytes() {
        #expect(Temperature(hundredths: -1).content == [255, 255, 255, 255])
        #expect(Temperature([0, 0, 7, 8])?.description == "18.0 °C")
        #expect(Temperature([0, 0, 7]) == nil)
    }

    @Test(arguments: [["--target", "400"], ["--target", "nan"], ["--interval", "-1"]])
    func wrongUsageIs64(_ arguments: [String]) async throws {
        let outcome = try await Program.product("Thermostat", ["watch"] + arguments).outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains("--help"), "\(outcome.errorText)")
    }
}
