internal import LifelineCore

extension RequestError {
    static var sessionEnded: RequestError {
        RequestError(
            code: .notSent,
            message: "The session has ended, so the peer has not seen the request. Begin another one.",
            cause: nil
        )
    }

    static var tooManyWithoutRoom: RequestError {
        RequestError(
            code: .tooManyInFlight,
            message:
                "Too many requests, or too many bytes of them, wait for room. Make fewer at once, or raise the limits.",
            cause: nil
        )
    }

    static var tooManyCancelled: RequestError {
        RequestError(
            code: .tooManyInFlight,
            message: "The peer has not acknowledged that earlier requests were cancelled. Repeat the request later.",
            cause: nil
        )
    }
}
