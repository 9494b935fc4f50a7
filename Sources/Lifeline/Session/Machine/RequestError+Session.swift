internal import LifelineCore

extension RequestError {
    static var sessionEnded: RequestError {
        RequestError(
            code: .notSent,
            message: "The session has ended, so that the peer has not seen the request. Begin another one.",
            cause: nil
        )
    }

    static var tooManyWithoutRoom: RequestError {
        RequestError(
            code: .tooManyInFlight,
            message:
                "Requests that have no room are as many, or as large, as what is kept. Ask less at once, or raise the limits.",
            cause: nil
        )
    }

    static var tooManyCancelled: RequestError {
        RequestError(
            code: .tooManyInFlight,
            message: "The peer has not acknowledged that earlier requests were cancelled. Ask again later.",
            cause: nil
        )
    }
}
