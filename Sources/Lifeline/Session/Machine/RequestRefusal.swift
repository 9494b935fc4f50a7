/// Why a request of the peer's is not handled, or its response is not sent.
package enum RequestRefusal: Sendable, Hashable {
    /// This side is about to end the session.
    case closing
    /// It has more metadata than a message may have.
    case tooManyEntries
    /// As many requests as may be processed in this session are, or those have as many bytes as its window.
    case tooManyRunning
    /// As many handlers run as may in all sessions of the server.
    case serverHandlers
    /// All sessions of the server keep as much as they may.
    case serverMemory
    /// The peer takes no message that is as large as the response.
    case responseTooLarge
    /// Responses that have no room are as much as may wait.
    case tooManyResponses
}
