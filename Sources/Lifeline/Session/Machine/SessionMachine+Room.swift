internal import LifelineCore

// Room and credit for messages, and their way into the log.
extension SessionMachine {
    // MARK: Room and credit

    /// Returns the limit that a message of this size exceeds by itself, if any.
    func limit(for byteCount: Int) -> Int? {
        let limit = min(peerFrameLimit, peerWindow.byteCount) - 2 * SessionSize.frameOverhead
        return byteCount > limit ? limit : nil
    }

    /// Returns whether the session may keep this many more bytes; if not, all sessions of the server together keep as
    /// much as they may.
    func mayKeep(_ byteCount: Int) -> Bool {
        allowance.byteCount == .max || keptByteCount + byteCount <= allowance.byteCount
    }

    /// Returns whether the log of the ordinary lane has room. A single message may be larger, because otherwise it
    /// would wait for ever.
    func hasRoom(for cost: Int, besides replaced: Int = 0) -> Bool {
        let kept = ordinary.keptSize
        let byteCount = kept.byteCount + details.count * Self.detailsOverhead
        return kept.frameCount < options.outboundLimit.frameCount
            && (byteCount - replaced + cost <= options.outboundLimit.byteCount || kept.frameCount == 0)
    }

    @inline(__always)
    func takes(_ message: OutgoingMessage, _ cost: Int) -> Bool {
        hasRoom(for: cost) && !waiting.hasReady && !isHeld(message.scope, serial: message.serial)
            && hasCredit(message)
    }

    /// Returns the serial of the request that parts of a response belong to; nil when it has ended. By then another
    /// request may have that serial.
    func peerSerial(of scope: MessageScope) -> UInt32? {
        guard case .responseParts(let request) = scope, peerStreams[request.serial]?.request == request else {
            return nil
        }
        return request.serial
    }

    func credit(of message: OutgoingMessage) -> SendCredit? {
        switch message.kind {
        case .push: pushCredits[Int(message.method) - 1]
        case .requestPart: ownStreams[message.serial]?.send
        case .responsePart: peerSerial(of: message.scope).flatMap { peerStreams[$0]?.send }
        default: nil
        }
    }

    func hasCredit(_ message: OutgoingMessage) -> Bool { credit(of: message)?.hasLeft ?? true }

    mutating func useCredit(_ cost: Int, _ message: OutgoingMessage) {
        switch message.kind {
        case .push: pushCredits[Int(message.method) - 1].use(cost)
        case .requestPart: ownStreams[message.serial]?.send?.use(cost)
        case .responsePart: if let serial = peerSerial(of: message.scope) { peerStreams[serial]?.send.use(cost) }
        default: break
        }
    }

    /// Returns the credit of a message that has ended unsent, or was replaced by a blank.
    mutating func giveBackCredit(_ cost: Int, _ message: OutgoingMessage) {
        switch message.kind {
        case .push: pushCredits[Int(message.method) - 1].giveBack(cost)
        case .requestPart: ownStreams[message.serial]?.send?.giveBack(cost)
        case .responsePart: if let serial = peerSerial(of: message.scope) { peerStreams[serial]?.send.giveBack(cost) }
        default: break
        }
        waiting.makeReady(message.scope)
    }

    // MARK: The log

    /// Returns the number of a method, and names a new one to the peer; nil if it cannot have one.
    mutating func methodNumber(_ name: String) -> UInt32? {
        if let number = methods.number(of: name) { return number }
        let length = name.utf8.count
        guard methods.count < MethodNumbers.maximumCount, length > 0, length <= MethodName.maximumByteCount else {
            return nil
        }
        let number = methods.add(name)
        pushCredits.append(SendCredit(initial: initialCredit))
        var name = name
        name.withUTF8 { name in
            let frame = OutboundFrame(.method, method: number, payload: UnsafeRawBufferPointer(name))
            lastMethodPlace = appendOrdinary(frame, tag: OutboundLog.Tag(.method))
        }
        return number
    }

    @discardableResult
    mutating func appendOrdinary(_ frame: OutboundFrame, capacity: Int? = nil, tag: OutboundLog.Tag) -> UInt64 {
        ordinary.append(byteCount: frame.byteCount, capacity: capacity, tag: tag) { frame.write(to: $0) }
    }

    mutating func append(_ frame: OutboundFrame, _ message: OutgoingMessage, tag: OutboundLog.Tag) {
        useCredit(frame.cost, message)
        appendOrdinary(frame, tag: tag)
    }

    mutating func append(_ frame: OutboundFrame, _ message: OutgoingMessage, _ details: MessageDetails) {
        useCredit(frame.cost, message)
        // A growing value moves to the end only when it exceeds its room, which doubles each time.
        let capacity = details.key == nil ? nil : max(64, frame.byteCount.nextPowerOfTwo)
        let place = appendOrdinary(frame, capacity: capacity, tag: OutboundLog.Tag(.awaited, hasDetails: true))
        setDetails(details, of: place)
    }

    mutating func setDetails(_ details: MessageDetails, of place: UInt64) {
        if let older = self.details.updateValue(details, forKey: place) { expiringPlaces[older.number] = nil }
        if let key = details.key { newestByKey[key] = .logged(place: place) }
        guard let deadline = details.deadline else { return }
        expiringPlaces[details.number] = place
        logDeadlines.insert(deadline, id: details.number)
        compactDeadlines()
    }

    /// Ends the message of a place.
    @discardableResult
    mutating func forgetDetails(of place: UInt64) -> MessageDetails? {
        guard let details = details.removeValue(forKey: place) else { return nil }
        if let key = details.key, case .logged(place)? = newestByKey[key] { newestByKey[key] = nil }
        if expiringPlaces.removeValue(forKey: details.number) != nil { compactDeadlines() }
        return details
    }

    private mutating func compactDeadlines() {
        let places = expiringPlaces
        logDeadlines.compact(liveCount: places.count) { places[$0] != nil }
    }

    mutating func appendEnd(serial: UInt32) {
        appendOrdinary(OutboundFrame(.requestEnd, serial: serial), tag: OutboundLog.Tag(.plain))
    }

    mutating func takeNumber() -> UInt64 {
        defer { nextNumber += 1 }
        return nextNumber
    }
}

extension Int {
    fileprivate var nextPowerOfTwo: Int { self <= 1 ? 1 : 1 << (Int.bitWidth - (self - 1).leadingZeroBitCount) }
}
