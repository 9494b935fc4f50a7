internal import LifelineCore

// Receiving frames without a place: acknowledgements, credit, and messages that are sent at most once.
extension SessionMachine {
    mutating func receiveUnplaced(
        _ kind: FrameKind,
        _ body: UnsafeRawBufferPointer,
        cost: Int,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) -> Arrival? {
        switch kind {
        case .acknowledgement:
            try receive(try Acknowledgement(parsing: body), now: now, into: &actions)
        case .credit:
            receive(try CreditGrant(parsing: body), now: now, into: &actions)
        case .goodbye:
            receive(try SessionGoodbye(parsing: body), now: now, into: &actions)
        case .hello:
            throw role == .server ? .openedTwice : .unexpectedFrame
        case .welcome:
            throw role == .client ? .openedTwice : .unexpectedFrame
        case .unplacedPush, .unplacedRequestPart, .unplacedResponsePart:
            return try receiveAtMostOnce(kind, try InboundMessage(kind, body), cost: cost)
        default: break
        }
        return nil
    }

    private mutating func receiveAtMostOnce(
        _ kind: FrameKind,
        _ message: InboundMessage,
        cost: Int
    ) throws(SessionViolation) -> Arrival? {
        if kind == .unplacedPush { try checkPush(message) }
        // These messages share the window with those that have places.
        let taken = inbound.unprocessedSize + unplacedSize
        guard mayKeep(cost), options.inboundWindow.takes(cost, besides: taken) else {
            droppedMessageCount += 1
            return nil
        }
        let arrival: Arrival? =
            switch kind {
            case .unplacedPush: .push(message, receipt(0, cost, .push(method: message.method)))
            case .unplacedRequestPart: try requestPart(message, 0, cost: cost)
            default: try responsePart(message, 0, cost: cost)
            }
        if arrival != nil { unplacedSize.add(cost) }
        return arrival
    }

    private mutating func receive(
        _ acknowledgement: Acknowledgement,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) {
        // The opening showed that frames not sent over this connection have not arrived. Places are counted, and would
        // shift if frames to be sent again were left out.
        let last = max(acknowledgement.ordinary, acknowledgement.ranges.last?.upperBound ?? 0)
        guard last < ordinary.nextToSend else { throw .unknownAcknowledgement(SessionPlace(.ordinary, last)) }
        guard acknowledgement.urgent < urgent.nextToSend else {
            throw .unknownAcknowledgement(SessionPlace(.urgent, acknowledgement.urgent))
        }
        acknowledged(upTo: acknowledgement.ordinary, urgent: acknowledgement.urgent, now: now, into: &actions)
        for range in acknowledgement.ranges {
            var released: [UInt64] = []
            ordinary.acknowledge(range) { place, tag, _ in if tag.hasDetails { released.append(place) } }
            for place in released { processed(place, now: now, into: &actions) }
        }
        admitWaiting(now: now, into: &actions)
    }

    mutating func acknowledged(
        upTo place: UInt64,
        urgent urgentPlace: UInt64,
        now: MonotonicTime,
        into actions: inout [Action]
    ) {
        // Few messages have details; an empty array costs nothing.
        var released: [UInt64] = []
        ordinary.acknowledge(upTo: place) { place, tag, _ in if tag.hasDetails { released.append(place) } }
        for place in released { processed(place, now: now, into: &actions) }
        urgent.acknowledge(upTo: urgentPlace) { _, _, _ in }
        guard spareMemoryDeadline == nil, ordinary.hasSpareMemory || urgent.hasSpareMemory else { return }
        spareMemoryDeadline = now + options.spareMemoryDelay
    }

    mutating func giveBackMemory(now: MonotonicTime) {
        guard let deadline = spareMemoryDeadline, deadline <= now else { return }
        spareMemoryDeadline = nil
        ordinary.giveBackMemory()
        urgent.giveBackMemory()
    }

    private mutating func processed(_ place: UInt64, now: MonotonicTime, into actions: inout [Action]) {
        guard let details = forgetDetails(of: place) else { return }
        finishedDurable(details.durable, now: now)
        if let call = details.answers { finish(call, now: now) }
        guard details.isObserved else { return }
        actions.append(.messageEnded(number: details.number, .processed))
    }

    private mutating func receive(_ grant: CreditGrant, now: MonotonicTime, into actions: inout [Action]) {
        switch grant.target {
        case .method(let number):
            guard number >= 1, number <= pushCredits.count, pushCredits[Int(number) - 1].grant(grant.bytes) else {
                return
            }
            waiting.makeReady(.pushes(methods.name(number)))
        case .requestParts(let serial):
            guard ownStreams[serial]?.send?.grant(grant.bytes) == true else { return }
            waiting.makeReady(.requestParts(serial: serial))
        case .responseParts(let serial):
            if let request = running.request(serial: serial) { beginPeerStream(request) }
            guard let request = peerStreams[serial]?.request, peerStreams[serial]?.send.grant(grant.bytes) == true
            else {
                return
            }
            waiting.makeReady(.responseParts(request))
        }
        admitWaiting(now: now, into: &actions)
    }
}
