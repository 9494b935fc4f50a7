internal import Lifeline
internal import LifelineCore

/// How a host's disk treats commits.
struct DiskCondition {
    /// How a commit fails.
    enum Failure {
        /// There is no room: nothing changes.
        case full
        /// Nothing changes.
        case beforeCommit
        /// Everything changes nevertheless.
        case afterCommit

        var error: StoreError {
            switch self {
            case .full: StoreError(code: .full, message: "The simulated disk is full.")
            case .beforeCommit, .afterCommit: StoreError(code: .failed, message: "The simulated disk fails.")
            }
        }
    }

    var slowUntil = MonotonicTime(nanoseconds: 0)
    var fullUntil = MonotonicTime(nanoseconds: 0)
    /// Only for one commit.
    var nextFailure: Failure?

    /// The longest time that a commit takes.
    func longestCommit(_ usual: Duration, at now: MonotonicTime) -> Duration {
        now < slowUntil ? usual + .seconds(1) : usual
    }

    /// How a commit at this time fails; nil if it succeeds.
    mutating func takeFailure(at now: MonotonicTime) -> Failure? { now < fullUntil ? .full : nextFailure.take() }
}
