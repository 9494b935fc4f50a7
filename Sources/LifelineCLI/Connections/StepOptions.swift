internal import ArgumentParser

/// Options for how much a command reports about its connections on standard error.
struct StepOptions: ParsableArguments {
    @Flag(help: "Do not tell of connections that are lost and made again.")
    var quiet = false

    @Flag(help: "Tell of each step of a connection, by Lifeline's own names of states and reasons.")
    var verbose = false

    func validate() throws {
        if quiet, verbose { throw ValidationError("--quiet and --verbose exclude each other.") }
    }
}
