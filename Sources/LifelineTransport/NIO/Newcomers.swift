internal import LifelineCore
internal import NIOConcurrencyHelpers

/// A listener's connections whose peers have not spoken. Connections are added on their loops, and make way on the listener's.
final class Newcomers: Sendable {
    private let line = NIOLockedValueBox(NewcomerLine<Newcomer>())

    /// A connection was accepted.
    ///
    /// - Parameter makeWay: closes it. Called once at most, on any thread.
    func add(_ makeWay: @escaping @Sendable () -> Void) -> Newcomer {
        let newcomer = Newcomer(makeWay)
        line.withLockedValue { $0.append(newcomer) { $0.isWaiting } }
        return newcomer
    }

    /// Whether a connection can make way.
    var areWaiting: Bool { line.withLockedValue { $0.hasWaiting { $0.isWaiting } } }

    /// Closes the connection that has said nothing for longest; false where there is none.
    func makeRoom() -> Bool {
        guard let oldest = line.withLockedValue({ $0.popFirst { $0.isWaiting } }) else { return false }
        oldest.take()?()
        return true
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
