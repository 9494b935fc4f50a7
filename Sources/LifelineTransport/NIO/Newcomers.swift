internal import LifelineCore
internal import NIOConcurrencyHelpers

/// A listener's connections whose peers have sent nothing. Connections are added on their loops, and make way on the
/// listener's.
final class Newcomers: Sendable {
    private struct State {
        var line = NewcomerLine<Newcomer>()
        /// Whether the listener has found none, and wants a notice of the next one.
        var isAwaited = false
        var arrivalHandler: (@Sendable () -> Void)?
    }

    private let state = NIOLockedValueBox(State())

    /// Sets the action for the next newcomer after none was found: a listener accepts connections before their own
    /// loops have added them here. May be called on any thread.
    func setArrivalHandler(_ action: (@Sendable () -> Void)?) {
        state.withLockedValue { $0.arrivalHandler = action }
    }

    /// Adds an accepted connection.
    ///
    /// - Parameter makeWay: closes it. Called at most once, on any thread.
    func add(_ makeWay: @escaping @Sendable () -> Void) -> Newcomer {
        let newcomer = Newcomer(makeWay)
        let arrivalHandler = state.withLockedValue { state -> (@Sendable () -> Void)? in
            state.line.append(newcomer) { $0.isWaiting }
            defer { state.isAwaited = false }
            return state.isAwaited ? state.arrivalHandler : nil
        }
        arrivalHandler?()
        return newcomer
    }

    /// Whether a connection can make way.
    var areWaiting: Bool {
        state.withLockedValue { state in
            let areWaiting = state.line.hasWaiting { $0.isWaiting }
            state.isAwaited = !areWaiting
            return areWaiting
        }
    }

    /// Closes the connection that has been silent for longest; returns false if there is none.
    func makeRoom() -> Bool {
        while let oldest = takeOldest() {
            // Its peer may have sent something a moment before.
            guard let makeWay = oldest.take() else { continue }
            makeWay()
            return true
        }
        return false
    }

    private func takeOldest() -> Newcomer? {
        state.withLockedValue { state in
            let oldest = state.line.popFirst { $0.isWaiting }
            state.isAwaited = oldest == nil
            return oldest
        }
    }
}

/// A connection whose peer has sent nothing.
final class Newcomer: Sendable {
    /// Nil once the peer was let in, or the connection is closed.
    private let makeWay: NIOLockedValueBox<(@Sendable () -> Void)?>

    fileprivate init(_ makeWay: @escaping @Sendable () -> Void) {
        self.makeWay = NIOLockedValueBox(makeWay)
    }

    /// Notes that the connection is no longer a newcomer.
    func leave() { _ = take() }

    fileprivate var isWaiting: Bool { makeWay.withLockedValue { $0 != nil } }

    fileprivate func take() -> (@Sendable () -> Void)? { makeWay.withLockedValue { $0.take() } }
}
