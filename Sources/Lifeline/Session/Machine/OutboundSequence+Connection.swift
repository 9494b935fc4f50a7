package import LifelineCore

// What connections and the peer bring.
extension OutboundSequence {
    /// The next message to send, with its place if it has one, if the peer takes one now.
    ///
    /// - Parameter beginsNothing: whether an ordinary message is sent for the first time only where it belongs to what was
    ///   begun before.
    package mutating func next(
        beginsNothing: Bool = false
    ) -> (place: SessionPlace?, message: Message, ended: Ended?)? {
        guard isConnected else { return nil }
        // Ordinary ones first, so that no cancellation comes before its request.
        if let lane: SessionLane = lanes.ordinary.hasResend ? .ordinary : lanes.urgent.hasResend ? .urgent : nil {
            let (sequence, entry) = lanes[lane].takeResend()
            return (SessionPlace(lane, sequence), entry.message, nil)
        }
        let ordinary = lanes.ordinary.sendablePosition(beginsNothing: beginsNothing)
        let urgent = lanes.urgent.sendablePosition()
        let lane: SessionLane = (urgent ?? .max) < (ordinary ?? .max) ? .urgent : .ordinary
        guard let position = lane == .urgent ? urgent : ordinary, let (sequence, entry) = lanes[lane].send(at: position)
        else { return nil }
        if !entry.isAdmitted, entry.kind == .push { sentUnadmitted.append(entry.number) }
        leftWaiting(entry)
        guard sequence == 0 else { return (SessionPlace(lane, sequence), entry.message, nil) }
        return (nil, entry.message, entry.isObserved ? Ended(entry.number, .sent) : nil)
    }

    /// The peer has processed everything up to these places. One that is behind what it said before says nothing.
    ///
    /// - Returns: What ended with that, of what is observed.
    package mutating func acknowledge(_ places: SessionAcknowledgement) throws(SessionViolation) -> [Ended] {
        try check(.ordinary, places.ordinary)
        try check(.urgent, places.urgent)
        var ended: [Ended] = []
        for lane in SessionLane.allCases {
            let place = lane == .ordinary ? places.ordinary : places.urgent
            while let entry = lanes[lane].takeProcessed(upTo: place) {
                if entry.isBlank { continue }
                if entry.isObserved { ended.append(Ended(entry.number, .processed)) }
            }
        }
        return ended
    }

    private func check(_ lane: SessionLane, _ sequence: UInt64) throws(SessionViolation) {
        let last = lanes.read(lane) { $0.lastSequence }
        guard sequence <= last else { throw .unknownAcknowledgement(SessionPlace(lane, sequence)) }
    }

    /// Whether a peer that comes back can be so far.
    package func check(_ progress: SessionProgress) throws(SessionViolation) {
        let processed = progress.processed
        for (lane, sequence) in [(SessionLane.ordinary, processed.ordinary), (.urgent, processed.urgent)] {
            let acknowledged = lanes.read(lane) { $0.acknowledged }
            guard sequence >= acknowledged else {
                throw .acknowledgementWentBack(SessionPlace(lane, sequence))
            }
            try check(lane, sequence)
        }
        try check(.ordinary, progress.received)
    }

    /// A connection is there: the session's first, or one on which it goes on.
    ///
    /// - Parameters:
    ///   - progress: how far the peer is.
    ///   - window: what it takes.
    /// - Returns: What ended: processed by the peer, or not worth sending again.
    package mutating func resume(
        _ progress: SessionProgress,
        window: SessionWindow,
        now: MonotonicTime
    ) throws(SessionViolation) -> [Ended] {
        try check(progress)
        let ended = try acknowledge(progress.processed)
        isConnected = true
        lanes.ordinary.resume(received: progress.received, window: window)
        lanes.urgent.resume(received: progress.processed.urgent, window: window)
        return ended + blankStale(now: now)
    }

    /// Takes the content from what is to be sent again and is not worth it.
    private mutating func blankStale(now: MonotonicTime) -> [Ended] {
        var ended: [Ended] = []
        var newerKeys = Set(waitingByKey.keys)
        // The newest of each key is the last one.
        for place in (lanes.ordinary.resendPlace..<lanes.ordinary.sent.nextNumber).reversed() {
            let entry = lanes.ordinary.sent[place]
            if entry.isBlank { continue }
            let isReplaced = entry.key.map { !newerKeys.insert($0).inserted } ?? false
            let isExpired = entry.deadline.map { $0 <= now } ?? false
            guard isReplaced || isExpired else { continue }
            lanes.ordinary.blank(place)
            if isReplaced, let key = entry.key, let newer = waitingByKey[key].flatMap(waitingEntry) {
                lanes.ordinary.replacedSent(at: newer.position)
            }
            ended.append(Ended(entry.number, isReplaced ? .replaced : .expired))
        }
        return ended.reversed()
    }

    /// The connection is lost: what was to be sent over it or not at all is dropped.
    package mutating func disconnect() -> [Ended] {
        isConnected = false
        return dropWaiting(.dropped) { $0.isAtMostOnce }
    }

    /// The peer does not know the session any more. What was sent is in doubt; what waits waits for the next session, unless
    /// it belongs to something that the peer knew.
    package mutating func forget() -> [Ended] {
        isConnected = false
        var ended: [Ended] = []
        for entry in lanes.ordinary.forgetSent() + lanes.urgent.forgetSent() where !entry.isBlank && entry.kind == .push
        {
            ended.append(Ended(entry.number, .inDoubt))
        }
        return ended + dropWaiting(.unsent, where: \.isOfThisSession)
    }

    /// Drops what waits and is longer than the frames that the peer takes, or larger than its window. Returns the
    /// numbers, of pushes and of requests.
    mutating func refuse(longerThan frameLimit: Int, largerThan byteLimit: Int) -> [Number] {
        // What belongs to the session has been accepted for this very peer.
        let refused = lanes.ordinary.waiting.elements
            .filter { !$0.isOfThisSession }
            .filter { $0.message.maximumFrameLength > frameLimit || $0.message.byteCount > byteLimit }.map(\.number)
        for number in refused { _ = takeWaiting(number) }
        return refused
    }

    /// The session is over. Tells of everything that is left.
    package mutating func end() -> [Ended] {
        forget() + dropWaiting(.unsent) { _ in true }
    }
}
