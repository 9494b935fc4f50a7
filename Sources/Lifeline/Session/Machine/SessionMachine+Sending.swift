package import LifelineCore

// Pushes and parts that this side sends, and their way into the log.
extension SessionMachine {
    /// The user's part of a message: encoded fields of its kind, such as metadata, and the encoded message.
    package struct Content {
        let fields: UnsafeRawBufferPointer
        let payload: UnsafeRawBufferPointer

        package init(
            fields: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
            payload: UnsafeRawBufferPointer
        ) {
            (self.fields, self.payload) = (fields, payload)
        }

        var byteCount: Int { fields.count + payload.count }
    }

    /// Sends a push.
    ///
    /// - Parameter isObserved: whether to report when it was sent or processed.
    package mutating func push(
        _ method: String,
        _ content: Content,
        _ delivery: SessionDelivery = .reliable,
        isObserved: Bool = false,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> Offer {
        guard !life.isOver, !life.isClosing else { return .closed }
        guard let number = methodNumber(method) else { return .badMethod }
        let message = OutgoingMessage(kind: .push, scope: .pushes(method), method: number)
        return send(message, content, delivery, isObserved: isObserved, now: now, into: &actions)
    }

    /// Sends a push if it can be accepted at once without any action. Otherwise changes nothing and returns false: then
    /// call `push`.
    package mutating func pushPlain(_ method: String, _ content: Content) -> Bool {
        guard life.isSteady, let number = methods.number(of: method) else { return false }
        return sendPlain(OutgoingMessage(kind: .push, scope: .pushes(method), method: number), content)
    }

    /// Does the same for a part of the response to a request of the peer.
    package mutating func sendPlainPart(ofResponseTo request: IncomingRequest, _ content: Content) -> Bool {
        // The first part begins its stream.
        guard life.isSteady, peerStreams[request.serial]?.request == request,
            running.isWaitedFor(request), running.hasParts(request)
        else { return false }
        let message = OutgoingMessage(kind: .responsePart, scope: .responseParts(request), serial: request.serial)
        return sendPlain(message, content)
    }

    /// Does the same for a part of a request of this side.
    package mutating func sendPlainPart(of request: RequestID, _ content: Content) -> Bool {
        let serial = RequestTable<OwnRequest>.serial(of: request)
        guard life.isSteady, requests.waiter(of: request) != nil, takesParts(serial) else { return false }
        let message = OutgoingMessage(kind: .requestPart, scope: .requestParts(serial: serial), serial: serial)
        return sendPlain(message, content)
    }

    /// Sends a part of the response to a request of the peer.
    package mutating func sendPart(
        ofResponseTo request: IncomingRequest,
        _ content: Content,
        _ delivery: SessionDelivery = .reliable,
        isObserved: Bool = false,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> Offer {
        guard !life.isOver else { return .closed }
        guard running.isWaitedFor(request) else { return .dropped }
        beginPeerStream(request)
        let message = OutgoingMessage(kind: .responsePart, scope: .responseParts(request), serial: request.serial)
        let offer = send(message, content, delivery, isObserved: isObserved, now: now, into: &actions)
        switch offer {
        // The response follows it in the same lane.
        case .accepted, .waits: if !delivery.isAtMostOnce { running.sentPart(of: request) }
        case .dropped, .tooLong, .exhausted, .badMethod, .notDurable, .closed: break
        }
        return offer
    }

    /// Sends a part of a request of this side.
    package mutating func sendPart(
        of request: RequestID,
        _ content: Content,
        _ delivery: SessionDelivery = .reliable,
        isObserved: Bool = false,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> Offer {
        guard !life.isOver else { return .closed }
        let serial = RequestTable<OwnRequest>.serial(of: request)
        guard requests.waiter(of: request) != nil, takesParts(serial) else { return .dropped }
        let message = OutgoingMessage(kind: .requestPart, scope: .requestParts(serial: serial), serial: serial)
        return send(message, content, delivery, isObserved: isObserved, now: now, into: &actions)
    }

    /// Ends the parts of a request of this side. Returns whether the request still waits for its response.
    package mutating func endParts(of request: RequestID, now: MonotonicTime, into actions: inout [Action]) -> Bool {
        let serial = RequestTable<OwnRequest>.serial(of: request)
        guard !life.isOver, requests.waiter(of: request) != nil, takesParts(serial) else { return false }
        ownStreams[serial]?.hasEnded = true
        let scope = MessageScope.requestParts(serial: serial)
        if waiting.isWaiting(in: scope) || isHeld(scope, serial: serial) {
            waiting.append(WaitingMessage(kind: .requestEnd, scope: scope, serial: serial, isAwaited: false))
        } else {
            appendEnd(serial: serial)
        }
        return true
    }

    /// Returns whether more parts of a request of this side may follow.
    private func takesParts(_ serial: UInt32) -> Bool {
        ownStreams[serial].map { $0.send != nil && !$0.hasEnded } ?? false
    }

    /// A message before it has a place.
    struct OutgoingMessage {
        let kind: FrameKind
        let scope: MessageScope
        var method: UInt32 = 0
        var serial: UInt32 = 0
    }

    private mutating func send(
        _ message: OutgoingMessage,
        _ content: Content,
        _ delivery: SessionDelivery,
        isObserved: Bool,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> Offer {
        if delivery.isDurable { return .notDurable }
        let cost = content.byteCount + SessionSize.frameOverhead
        if let limit = limit(for: content.byteCount) { return .tooLong(limit: limit) }
        let isKept = mayKeep(cost)
        if delivery.isAtMostOnce {
            guard isKept, life.canSend, !isHeld(message.scope, serial: message.serial),
                unplaced.count < SessionTerms.smallestCredit
            else { return .dropped }
            return sendUnplaced(message, content, isObserved: isObserved)
        }
        guard isKept else { return .exhausted }
        if delivery.key != nil || delivery.timeToLive != nil || isObserved {
            return sendSpecial(message, content, delivery, isObserved: isObserved, now: now, into: &actions)
        }
        if append(message, content) { return .accepted(number: 0) }
        return wait(message, content, delivery, isObserved: false, deadline: nil)
    }

    /// Puts a message without key and time to live, which is not observed, into the log. Returns false if it has to
    /// wait.
    @inline(__always)
    private mutating func append(_ message: OutgoingMessage, _ content: Content) -> Bool {
        let frame = OutboundFrame(message, content)
        guard !waiting.isWaiting(in: message.scope), takes(message, frame.cost) else { return false }
        append(frame, message, tag: OutboundLog.Tag(.plain))
        return true
    }

    /// Does the same for a message that is not checked yet. Returns false if it has to be sent in another way.
    @inline(__always)
    private mutating func sendPlain(_ message: OutgoingMessage, _ content: Content) -> Bool {
        limit(for: content.byteCount) == nil && mayKeep(content.byteCount + SessionSize.frameOverhead)
            && append(message, content)
    }

    /// Sends a message that has a key or a time to live, or is observed.
    private mutating func sendSpecial(
        _ message: OutgoingMessage,
        _ content: Content,
        _ delivery: SessionDelivery,
        isObserved: Bool,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> Offer {
        let deadline = delivery.timeToLive.map { now + $0 }
        let frame = OutboundFrame(message, content)
        let key = delivery.key.map { ScopedKey(scope: message.scope, key: $0) }
        // A message that replaces an accepted one is accepted, too. Otherwise neither would be sent if its sender gave
        // up.
        var isAccepted = false
        if let key, let newest = newestByKey[key] {
            switch newest {
            case .waiting(let number):
                var newer = waitingMessage(message, content, delivery, isObserved: isObserved, deadline: deadline)
                newer.isAwaited = waiting[number]?.isAwaited ?? true
                waiting.replace(number, with: newer)
                noteWaiting(newer)
                actions.append(.messageEnded(number: number, .replaced))
                return newer.isAwaited ? .waits(number: newer.number) : .accepted(number: newer.number)
            case .logged(let place):
                if replaceLogged(place, frame, message, delivery, isObserved, deadline, key, into: &actions) {
                    return .accepted(number: nextNumber - 1)
                }
                // The end of the call would overtake a part that waits.
                isAccepted = place >= ordinary.sentEnd && message.kind == .push
                admitWaiting(now: now, into: &actions)
            }
        }
        guard !waiting.isWaiting(in: message.scope), takes(message, frame.cost + Self.detailsOverhead) else {
            return wait(
                message,
                content,
                delivery,
                isObserved: isObserved,
                deadline: deadline,
                isAccepted: isAccepted
            )
        }
        let number = takeNumber()
        let details = MessageDetails(
            number: number,
            scope: message.scope,
            delivery: delivery,
            deadline: deadline,
            key: key,
            isObserved: isObserved
        )
        append(frame, message, details)
        return .accepted(number: number)
    }

    /// Puts a newer message into the place of an unsent one, if there is room; otherwise gives up the older one's
    /// place. Returns whether the newer one has a place.
    private mutating func replaceLogged(
        _ place: UInt64,
        _ frame: OutboundFrame,
        _ message: OutgoingMessage,
        _ delivery: SessionDelivery,
        _ isObserved: Bool,
        _ deadline: MonotonicTime?,
        _ key: ScopedKey,
        into actions: inout [Action]
    ) -> Bool {
        // The peer may have received a sent message.
        guard place >= ordinary.sentEnd, let older = details[place] else { return false }
        let olderCost = ordinary.withFrame(place) { OutboundLog.cost($0.count) }
        giveBackCredit(olderCost, message)
        // Later messages may have used the credit.
        let isCovered = frame.cost <= olderCost || credit(of: message)?.covers(frame.cost) != false
        let isReplaced =
            isCovered && hasRoom(for: frame.cost, besides: olderCost)
            && ordinary.replace(place, byteCount: frame.byteCount) { frame.write(to: $0) }
        actions.append(.messageEnded(number: older.number, .replaced))
        guard isReplaced else {
            ordinary.blank(place)
            forgetDetails(of: place)
            return false
        }
        useCredit(frame.cost, message)
        setDetails(
            MessageDetails(
                number: takeNumber(),
                scope: message.scope,
                delivery: delivery,
                deadline: deadline,
                key: key,
                isObserved: isObserved
            ),
            of: place
        )
        return true
    }

    private mutating func sendUnplaced(_ message: OutgoingMessage, _ content: Content, isObserved: Bool) -> Offer {
        var message = message
        message = OutgoingMessage(
            kind: message.kind.unplaced,
            scope: message.scope,
            method: message.method,
            serial: message.serial
        )
        switch message.kind {
        case .unplacedPush: unplacedPlace = max(unplacedPlace, lastMethodPlace)
        case .unplacedRequestPart:
            unplacedPlace = max(unplacedPlace, requests.waiter(serial: message.serial)?.place ?? 0)
        default: break
        }
        let frame = OutboundFrame(message, content)
        let start = unplaced.count
        unplaced.append(contentsOf: repeatElement(0, count: frame.byteCount))
        unplaced.withUnsafeMutableBytes { frame.write(to: $0.baseAddress! + start) }
        guard isObserved else { return .accepted(number: 0) }
        unplacedNumbers.append(takeNumber())
        return .accepted(number: nextNumber - 1)
    }
}

extension OutboundFrame {
    init(_ message: SessionMachine.OutgoingMessage, _ content: SessionMachine.Content) {
        self.init(
            message.kind,
            serial: message.serial,
            method: message.method,
            fields: content.fields,
            payload: content.payload
        )
    }

    /// The cost as windows and credits count it.
    var cost: Int { OutboundLog.cost(byteCount) }
}

extension FrameKind {
    /// The kind of the same message when it is sent at most once.
    var unplaced: FrameKind {
        switch self {
        case .push: .unplacedPush
        case .requestPart: .unplacedRequestPart
        default: .unplacedResponsePart
        }
    }
}
