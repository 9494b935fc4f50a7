internal import LifelineCore

/// The presence events that one watcher has not taken yet. They are bounded: a watcher that is too slow gets all
/// present members instead of single events.
package struct PresenceFeed: Sendable {
    private var events = FIFO<PresenceEvent>()
    private var wantsPresent = true
    private let limit: Int

    /// - Parameter limit: the most events that wait.
    package init(limit: Int = 256) { self.limit = limit }

    package mutating func add(_ new: [PresenceEvent]) {
        if wantsPresent { return }
        for event in new { events.append(event) }
        guard events.count > limit else { return }
        events = FIFO()
        wantsPresent = true
    }

    /// Returns the next event; nil when there is none yet.
    ///
    /// - Parameter present: the present members; nil when they are not known yet.
    package mutating func next(_ present: @autoclosure () -> [GroupMember]?) -> PresenceEvent? {
        guard wantsPresent else { return events.isEmpty ? nil : events.removeFirst() }
        guard let present = present() else { return nil }
        wantsPresent = false
        return .present(present)
    }
}
