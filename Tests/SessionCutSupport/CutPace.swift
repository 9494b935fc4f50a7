internal import Synchronization

/// The pace of senders, which follows the proof's cuts, so that the messages last until the last cut.
package final class CutPace: Sendable {
    private struct State {
        /// The part of a flow's messages that may be sent: 0 at first.
        var (done, whole) = (0, 1)
        var waiters: [CheckedContinuation<Void, Never>] = []

        func allows(_ number: Int, of count: Int) -> Bool { number * whole <= count * done }
    }

    private let state = Mutex(State())

    package init() {}

    /// Waits until a number is due.
    package func wait(for number: Int, of count: Int) async {
        while !state.withLock({ $0.allows(number, of: count) }) {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    if state.allows(number, of: count) { return true }
                    state.waiters.append(continuation)
                    return false
                }
                if isDue { continuation.resume() }
            }
        }
    }

    /// A larger part is due.
    package func allow(_ done: Int, of whole: Int) {
        let waiters = state.withLock { state in
            (state.done, state.whole) = (done, max(whole, 1))
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Runs commands until there are no more: `pace DONE WHOLE`. After that, nothing waits.
    package func obey(_ nextCommand: () async throws -> [String]?) async throws {
        defer { allow(1, of: 1) }
        while let command = try await nextCommand() {
            guard command.count == 3, command[0] == "pace", let done = Int(command[1]), let whole = Int(command[2])
            else {
                throw CutCommandError(command: command)
            }
            allow(done, of: whole)
        }
    }
}

/// A program does not know a command.
package struct CutCommandError: Error, CustomStringConvertible {
    let command: [String]

    package var description: String { "There is no command like \(command.joined(separator: " "))." }
}
