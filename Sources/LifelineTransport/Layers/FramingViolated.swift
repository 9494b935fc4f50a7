internal import LifelineCore

/// Reports that the peer's bytes violate its framing. A layer sends this once; the receiver of the frames decides what
/// it means.
package struct FramingViolated: Sendable {
    let error: ConnectionError

    package init(_ cause: any Error) {
        error = .protocolViolation(cause)
    }
}
