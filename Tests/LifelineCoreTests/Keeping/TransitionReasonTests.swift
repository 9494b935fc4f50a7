import LifelineCore
import Testing

@Suite struct TransitionReasonTests {
    @Test(
        arguments: [
            (.closedByPeer, .closedByPeer), (.protocolViolation, .protocolViolation), (.tlsRejected, .tlsRejected),
            (.heartbeatTimeout, .heartbeatTimeout), (.networkLost, .networkLost), (.ioError, .connectionFailed),
            (.closedLocally, .connectionFailed), (.truncated, .closedByPeer), (.certificateExpired, .tlsRejected),
        ] as [(ConnectionError.Code, TransitionReason.Code)]
    )
    func errorsThatEndAConnection(error: ConnectionError.Code, reason: TransitionReason.Code) {
        let ended = TransitionReason.ended(by: ConnectionError(code: error, message: "why"))
        #expect(ended == TransitionReason(reason, error: ConnectionError(code: error, message: "why")))
        #expect(ended.asError.code == error && ended.asError.message == "why")
    }

    @Test func anEndInOrderHasNoError() {
        let ended = TransitionReason.ended(by: nil)
        #expect(ended == TransitionReason(.closedByPeer))
        #expect(ended != TransitionReason.ended(by: ConnectionError(code: .closedByPeer, message: "reset")))
    }

    @Test(
        arguments: [
            (.tlsRejected, .tlsRejected, true), (.tlsVersionUnsupported, .tlsRejected, true),
            (.certificateExpired, .tlsRejected, true), (.certificateHostMismatch, .tlsRejected, true),
            (.certificateUntrusted, .tlsRejected, true), (.certificatePinMismatch, .tlsRejected, true),
            (.invalidConfiguration, .connectFailed, true), (.invalidEndpoint, .connectFailed, true),
            (.unixSocketPathTooLong, .connectFailed, true), (.connectFailed, .connectFailed, false),
            (.connectTimeout, .connectFailed, false), (.ioError, .connectFailed, false),
            (.proxyRefused, .connectFailed, true),
            (.proxyAuthenticationRequired, .connectFailed, true), (.proxyConnectFailed, .connectFailed, false),
            (.proxyProtocolViolation, .connectFailed, false),
        ] as [(ConnectionError.Code, TransitionReason.Code, Bool)]
    )
    func errorsOfAttempts(error: ConnectionError.Code, reason: TransitionReason.Code, isFatal: Bool) {
        let failed = TransitionReason.connectFailed(ConnectionError(code: error, message: "why"))
        #expect(failed.code == reason)
        #expect(failed.isFatal == isFatal)
    }

    @Test(
        arguments: [
            (.closedByPeer, .closedByPeer), (.heartbeatTimeout, .heartbeatTimeout), (.networkLost, .networkLost),
            (.reconnectRequested, .closedLocally), (.cancelled, .closedLocally), (.closedByUser, .closedLocally),
        ] as [(TransitionReason.Code, ConnectionError.Code)]
    )
    func reasonsAsErrors(reason: TransitionReason.Code, error: ConnectionError.Code) {
        #expect(TransitionReason(reason).asError.code == error)
        #expect(!TransitionReason(reason).isFatal)
    }

    @Test func descriptions() {
        let reason = TransitionReason.connectFailed(.refused)
        let step = ConnectionTransition(
            number: 2,
            time: at(1),
            from: .connecting,
            to: .backingOff,
            reason: reason,
            attempt: 1,
            nextAttempt: at(2.1)
        )
        #expect(
            "\(step)" == "#2 connecting → backingOff: connectFailed (connectFailed: refused), attempt 1, "
                + "next attempt in 1.1 seconds"
        )
        let end = ConnectionTransition(number: 3, time: at(1), from: .idle, to: .closed, reason: .init(.cancelled))
        #expect("\(end)" == "#3 idle → closed: cancelled")
    }
}
