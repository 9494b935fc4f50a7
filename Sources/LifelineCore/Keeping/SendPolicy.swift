/// The handling of a message that is sent while there is no connection.
public struct SendPolicy: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case wait(Duration)
        case fail
        case drop(Duration)
    }

    package let kind: Kind

    /// The message waits for a connection for at most this time; then the send fails with `sendTimedOut`. Default: 30
    /// s, the longest delay between two attempts to connect. Values below 0 count as 0, those over 365 days as 365
    /// days.
    public static func wait(timeout: Duration = .seconds(30)) -> SendPolicy {
        SendPolicy(kind: .wait(timeout.clamped(atLeast: .zero)))
    }

    /// The send fails at once with `notConnected`.
    public static let fail = SendPolicy(kind: .fail)

    /// The message waits for a connection and is dropped after this time, which is not a failure: for messages that are
    /// worthless when they come late. Values below 0 count as 0, those over 365 days as 365 days.
    public static func drop(after timeout: Duration) -> SendPolicy {
        SendPolicy(kind: .drop(timeout.clamped(atLeast: .zero)))
    }

    /// Returns the policy with the rest of its timeout.
    package func rest(after elapsed: Duration) -> SendPolicy {
        switch kind {
        case .wait(let timeout): .wait(timeout: timeout - elapsed)
        case .drop(let timeout): .drop(after: timeout - elapsed)
        case .fail: .fail
        }
    }
}
