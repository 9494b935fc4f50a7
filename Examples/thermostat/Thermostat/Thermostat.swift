internal import ArgumentParser

/// A simulated device with the framing of fixed headers, and a program that watches it.
@main struct Thermostat: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Thermostat",
        abstract: "Talks to a thermostat that speaks the framing with fixed headers.",
        discussion: """
            Examples:
              Thermostat simulate
              Thermostat watch --target 21.5
            """,
        subcommands: [Simulate.self, Watch.self]
    )
}
