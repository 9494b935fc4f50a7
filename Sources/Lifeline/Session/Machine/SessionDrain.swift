package import LifelineCore

/// When to send a client away from a server that shuts down, and when the client should come back.
package struct SessionDrain: Sendable {
    /// The earliest time to send the client away, once no message waits to be sent; nil for now.
    package var start: MonotonicTime?
    /// The pause after which the client comes back.
    package var pause = Duration.zero
    /// The time to send the client away even if messages still wait to be sent.
    package var deadline: MonotonicTime

    package init(start: MonotonicTime? = nil, pause: Duration = .zero, deadline: MonotonicTime) {
        (self.start, self.pause, self.deadline) = (start, pause, deadline)
    }

    /// The earlier times of two drains, with the pause of the new one.
    func hastened(by new: SessionDrain) -> SessionDrain {
        var start: MonotonicTime?
        if let own = self.start, let other = new.start { start = min(own, other) }
        return SessionDrain(start: start, pause: new.pause, deadline: min(deadline, new.deadline))
    }
}
