internal import ArgumentParser
internal import Lifeline

/// Reads the endpoint of an option. Errors have the reason.
///
/// Options keep the text and read it in `validate()`, because the parser's errors repeat a wrong value, which may
/// contain a password.
func parseEndpoint(_ text: String) throws -> Endpoint {
    do throws(ConnectionError) {
        return try Endpoint(text)
    } catch {
        throw ValidationError(error.message)
    }
}

/// The endpoint on which `lifeline serve` listens by default.
let defaultRoomEndpoint = "tcp://127.0.0.1:7000"

/// Reads a duration of an option.
func parseSeconds(_ value: Double, of name: String) throws -> Duration {
    guard value >= 0, value <= 1e7 else { throw ValidationError("\(name) must be 0 to 10,000,000 seconds.") }
    return .seconds(value)
}
