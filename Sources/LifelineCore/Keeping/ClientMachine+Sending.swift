// Sends that cannot go straight to the connection: there is none, others already wait, or the present one has failed.
extension ClientMachine {
    /// Offers a message with its length.
    ///
    /// - Parameter start: the time since which it waits. Time spent waiting for room on a connection counts for the
    ///   policy's timeout.
    package mutating func offered(
        byteCount: Int,
        policy: SendPolicy,
        since start: MonotonicTime,
        now: MonotonicTime
    ) -> SendQueue.OfferAction {
        let now = manager.observe(now)
        return queue.offered(byteCount: byteCount, policy: policy.rest(after: now - start), now: now)
    }

    /// Cancels a message for its sender.
    package mutating func sendCancelled(_ send: SendQueue.ID) -> [Action] {
        switch queue.cancelled(send) {
        case .end(let ended): [.endSend(ended, by: nil)]
        case .withdraw: [.withdraw(send)]
        case .none: []
        }
    }

    /// Notes that a connection refused a message, because it has failed. Nothing more is offered to it.
    package mutating func sendFailed(on id: ConnectionID) -> [Action] {
        guard case .open(let open) = link, open.id == id else { return [] }
        return actions(forEnded: queue.becameUnready())
    }

    /// Notes that the hand-over of a send to a connection is over.
    ///
    /// - Parameter isAccepted: whether the connection has accepted the send; if not, it never will.
    package mutating func handOverEnded(
        _ send: SendQueue.ID,
        on id: ConnectionID,
        isAccepted: Bool,
        now: MonotonicTime
    ) -> [Action] {
        guard case .open(let open) = link, open.id == id else { return [] }
        guard let inHand = queue.inHand, inHand.id == send else { return [] }
        let now = manager.observe(now)
        if isAccepted {
            let ended = queue.handedOver(send).map { actions(forEnded: [$0], by: id) } ?? []
            return ended + handOverNext(now)
        }
        // A connection from which the send was withdrawn goes on.
        let failed = inHand.isCancelled ? [] : actions(forEnded: queue.becameUnready())
        return failed + endHandOver() + handOverNext(now)
    }

    /// Offers the next send to the connection, if there is one and no other send is in hand.
    mutating func handOverNext(_ now: MonotonicTime) -> [Action] {
        guard case .open(let open) = link else { return [] }
        let ended = actions(forEnded: queue.timerFired(now: now))
        guard let next = queue.next() else { return ended }
        return ended + [.handOver(next, to: open.id)]
    }

    /// Ends the hand-over of a send that the connection has not accepted, and never will.
    mutating func endHandOver() -> [Action] {
        guard let inHand = queue.inHand, let ended = queue.handOverFailed(inHand.id) else { return [] }
        return actions(forEnded: [ended])
    }

    /// Returns the error that a send fails with.
    package func error(for code: ConnectionError.Code) -> ConnectionError { queue.error(for: code) }
}
