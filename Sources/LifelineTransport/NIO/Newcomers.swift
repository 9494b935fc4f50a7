internal import LifelineCore
internal import NIOConcurrencyHelpers

/// A listener's connections whose peers have not spoken. Connections are added on their loops, and make way on the
/// listener's.
final class Newcomers: Sendable {
    private struct State {
        var line = NewcomerLine<Newcomer>()
        /// Whether the listener has found none, and is to hear of the next one.
        var isAwaited = false
        var arrivalHandler: (@Sendable () -> Void)?
    }

    private let state = NIOLockedValueBox(State())

    /// Sets what is called when a newcomer comes after none was found: a listener accepts connections before their own
    /// loops have added them here. On any thread.
    func setArrivalHandler(_ action: (@Sendable () -> Void)?) {
        state.withLockedValue { $0.arrivalHandler = action }
    }

    /// A connection was accepted.
    ///
    /// - Parameter makeWay: closes it. Called once at most, on any thread.
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

    /// Closes the connection that has said nothing for longest; false where there is none.
    func makeRoom() -> Bool {
        while let oldest = takeOldest() {
            // Its peer may have spoken a moment before.
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

/// A connection whose peer has not spoken.
final class Newcomer: Sendable {
    /// Nil once it was let in, or is closed.
    private let makeWay: NIOLockedValueBox<(@Sendable () -> Void)?>

    fileprivate init(_ makeWay: @escaping @Sendable () -> Void) {
        self.makeWay = NIOLockedValueBox(makeWay)
    }

    /// It is none any more.
    func leave() { _ = take() }

    fileprivate var isWaiting: Bool { makeWay.withLockedValue { $0 != nil } }

    fileprivate func take() -> (@Sendable () -> Void)? { makeWay.withLockedValue { $0.take() } }
}
