internal import LifelineCore

/// What one watcher has not taken yet of what has become of the members of a group. It is bounded: one that is too slow
/// gets all who are present instead of single events.
package struct PresenceFeed: Sendable {
    private var events = FIFO<PresenceEvent>()
    private var wantsPresent = true
    private let limit: Int

    /// - Parameter limit: how many events wait at most.
    package init(limit: Int = 256) { self.limit = limit }

    package mutating func add(_ new: [PresenceEvent]) {
        if wantsPresent { return }
        for event in new { events.append(event) }
        guard events.count > limit else { return }
        events = FIFO()
        wantsPresent = true
    }

    /// Returns the next event; nil where there is none yet.
    ///
    /// - Parameter present: nil where it is not known yet.
    package mutating func next(_ present: @autoclosure () -> [GroupMember]?) -> PresenceEvent? {
        guard wantsPresent else { return events.isEmpty ? nil : events.removeFirst() }
        guard let present = present() else { return nil }
        wantsPresent = false
        return .present(present)
    }
}
