internal import ArgumentParser
internal import Lifeline

/// How messages look on standard input and output.
enum MessageFormat: String, CaseIterable, ExpressibleByArgument {
    case text, delimited
}

/// Reads the endpoint that an option names, with an error that says what is wrong with it.
@Sendable func parseEndpoint(_ text: String) throws -> Endpoint {
    do throws(ConnectionError) {
        return try Endpoint(text)
    } catch {
        throw ValidationError(error.message)
    }
}
