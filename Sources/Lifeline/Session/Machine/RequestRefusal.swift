/// The reason why a request of the peer is not handled, or its response is not sent.
package enum RequestRefusal: Sendable, Hashable {
    /// This side is about to end the session.
    case closing
    /// The request has more metadata than a message may have.
    case tooManyEntries
    /// This session processes as many requests, or as many bytes of requests, as it may.
    case tooManyRunning
    /// All sessions of the server together run as many handlers as they may.
    case serverHandlers
    /// All sessions of the server together keep as much as they may.
    case serverMemory
    /// The response is larger than the messages that the peer takes.
    case responseTooLarge
    /// Too many bytes of responses wait for room.
    case tooManyResponses
}
