internal import LifelineCore

// Those that wait.
extension OutboundSequence {
    mutating func append(
        _ number: Number,
        _ message: Message,
        _ delivery: SessionDelivery,
        isObserved: Bool,
        now: MonotonicTime
    ) -> (isAdmitted: Bool, replaced: Ended?) {
        let entry = Lane.Entry(number: number, message, delivery, isObserved: isObserved, now: now)
        if let deadline = entry.deadline {
            deadlines.insert(deadline, id: number)
            waitingDeadlineCount += 1
        }
        guard let key = entry.key else { return (lanes[message.lane].append(entry), nil) }
        guard let number = waitingByKey.updateValue(number, forKey: key), let older = waitingEntry(number) else {
            return (lanes[message.lane].append(entry), nil)
        }
        let isAdmitted = lanes[message.lane].replace(older, with: entry)
        positions[entry.number] = older.position
        leftWaiting(older)
        return (isAdmitted, Ended(older.number, .replaced))
    }

    func waitingEntry(_ number: Number) -> Lane.Entry? {
        let position = positions[number] ?? number
        let entry = lanes.ordinary.waiting[position] ?? lanes.urgent.waiting[position]
        // Another may stand at the position that its number was.
        return entry?.number == number ? entry : nil
    }

    func lane(ofWaiting number: Number) -> SessionLane? {
        guard let entry = waitingEntry(number) else { return nil }
        return lanes.ordinary.waiting[entry.position] != nil ? .ordinary : .urgent
    }

    mutating func dropWaiting(
        _ outcome: SessionDeliveryOutcome,
        where isDropped: (Lane.Entry) -> Bool
    ) -> [Ended] {
        var ended: [Ended] = []
        for lane in SessionLane.allCases {
            let numbers = lanes.read(lane) { $0.waiting.elements }.filter(isDropped).map(\.number)
            for number in numbers {
                if let end = drop(number, outcome) { ended.append(end) }
            }
        }
        return ended
    }

    /// Ends a message that waits; nil when it does not, or nothing is told of it.
    mutating func drop(
        _ number: Number,
        _ outcome: SessionDeliveryOutcome
    ) -> Ended? {
        guard let entry = takeWaiting(number), entry.kind == .push else { return nil }
        return Ended(number, outcome)
    }

    mutating func takeWaiting(_ number: Number) -> Lane.Entry? {
        guard let found = waitingEntry(number), let lane = lane(ofWaiting: number),
            let entry = lanes[lane].dropWaiting(at: found.position)
        else { return nil }
        leftWaiting(entry)
        return entry
    }

    mutating func leftWaiting(_ entry: Lane.Entry) {
        if !positions.isEmpty { positions[entry.number] = nil }
        if let key = entry.key, waitingByKey[key] == entry.number { waitingByKey[key] = nil }
        guard entry.deadline != nil else { return }
        waitingDeadlineCount -= 1
        // Taken out while the rest of this is asked.
        var deadlines = DeadlineHeap()
        swap(&deadlines, &self.deadlines)
        deadlines.compact(liveCount: waitingDeadlineCount) { isWaiting($0) }
        self.deadlines = deadlines
    }
}
