internal import ArgumentParser
internal import Lifeline

/// Reads the endpoint that an option names, with an error that says what is wrong with it.
///
/// Options keep the text, and have it read in `validate()`: what the parser says of a value that is wrong has the value
/// in it, and so a password that somebody wrote there.
func parseEndpoint(_ text: String) throws -> Endpoint {
    do throws(ConnectionError) {
        return try Endpoint(text)
    } catch {
        throw ValidationError(error.message)
    }
}

/// Where `lifeline serve` listens by default.
let defaultRoomEndpoint = "tcp://127.0.0.1:7000"

/// Reads a length of time that an option names.
func parseSeconds(_ value: Double, of name: String) throws -> Duration {
    guard value >= 0, value <= 1e7 else { throw ValidationError("\(name) must be 0 to 10,000,000 seconds.") }
    return .seconds(value)
}
