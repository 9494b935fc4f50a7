internal import LifelineCore

/// What the peer sends is not in its framing any more. A layer tells it once; the receiver of the frames decides what
/// it means.
package struct FramingViolated: Sendable {
    let error: ConnectionError

    package init(_ cause: any Error) {
        error = .protocolViolation(cause)
    }
}
