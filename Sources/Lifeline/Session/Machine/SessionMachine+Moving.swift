package import LifelineCore

// The move of a session from one server to another. The first server receives nothing more, waits until everything
// received is processed and no call runs, and takes a snapshot, which ends the session there. The second server makes a
// machine from the snapshot, which goes on as if the client had come back to the first.
extension SessionMachine {
    /// Makes a server's end of a session that another server had before.
    ///
    /// - Precondition: `snapshot.isSound`.
    package init(_ snapshot: SessionSnapshot, options: SessionOptions) {
        precondition(snapshot.isSound, "The snapshot is invalid.")
        self.init(role: .server, options: options.with(snapshot.ownTerms))
        wasOpened = true
        peerTerms = snapshot.peerTerms
        peerReceived = snapshot.peerReceived
        inbound = InboundLane(self.options, received: snapshot.received)
        urgentInbound = UrgentLane(self.options, received: snapshot.urgentReceived)
        for method in snapshot.methods {
            _ = methods.add(method.name)
            pushCredits.append(SendCredit(granted: method.granted, used: method.used))
        }
        for method in snapshot.peerMethods {
            let credit = ReceiveCredit(limit: self.options.inboundCredit, received: method.received, told: method.told)
            _ = addPeerMethod(method.name, credit)
        }
        ordinary = OutboundLog(snapshot.ordinary)
        urgent = OutboundLog(snapshot.urgent)
    }

    /// Restores the keys and times to live of a snapshot's messages, and its waiting messages. Called once, before
    /// anything else.
    package mutating func takePromises(of snapshot: SessionSnapshot, now: MonotonicTime) {
        for frame in snapshot.ordinary.frames {
            switch frame.role {
            case .plain, .blank: break
            case .method: lastMethodPlace = frame.place
            case .special(let promised):
                let number = frame.bytes.withUnsafeBytes { Self.parsed($0)?.1.method } ?? 0
                // Only pushes have keys and times to live.
                guard let method = methods.knownName(number) else { continue }
                let scope = MessageScope.pushes(method)
                setDetails(
                    MessageDetails(
                        number: takeNumber(),
                        scope: scope,
                        delivery: promised.delivery,
                        deadline: promised.timeLeft.map { now + $0 },
                        key: promised.key.map { ScopedKey(scope: scope, key: $0) },
                        isObserved: false
                    ),
                    of: frame.place
                )
            }
        }
        for push in snapshot.waiting {
            var message = WaitingMessage(kind: .push, scope: .pushes(push.method), number: takeNumber())
            (message.method, message.fields, message.payload) = (push.method, push.fields, push.payload)
            (message.delivery, message.isAwaited) = (push.details.delivery, false)
            message.deadline = push.details.timeLeft.map { now + $0 }
            waiting.append(message)
            noteWaiting(message)
        }
    }

    /// Stops receiving, so that the session can move to another server. The client is sent there.
    ///
    /// - Parameters:
    ///   - pause: the pause after which the client comes back.
    ///   - cancelling: the time at which handlers that still run are cancelled.
    ///   - deadline: the time from which on the session stays here after all, if some of its work goes on.
    /// - Returns: whether the session can move: a session with a store stays with its store.
    package mutating func move(pause: Duration, cancelling: MonotonicTime, by deadline: MonotonicTime) -> Bool {
        precondition(role == .server)
        guard wasOpened, durability == nil else { return false }
        let began = !life.isMoving
        guard life.move(cancelling: cancelling, by: deadline) else { return false }
        guard began else { return true }
        switch life.connection {
        case .opening, .open, .leaving:
            sayWhatWasProcessed()
            SessionGoodbye(.draining, pause: pause).write(to: &control)
            life.connection = .closing(.inOrder, saysGoodbye: true)
        case .left:
            life.connection = .closing(.inOrder, saysGoodbye: false)
        case .none, .closing, .closed:
            break
        }
        return true
    }

    mutating func moveTimerFired(now: MonotonicTime, into actions: inout [Action]) {
        guard life.moveTimerFired(now: now) else { return }
        // Each request is answered with the result of its handler.
        for request in running.waitedFor { actions.append(.cancelRequest(request)) }
    }

    /// Whether the session is about to move to another server.
    package var isMoving: Bool { life.isMoving }

    /// Ends the session here, and returns the snapshot for another server; nil while some of its work runs here.
    package mutating func takeSnapshot(now: MonotonicTime, into actions: inout [Action]) -> SessionSnapshot? {
        guard life.isMoving, isAtRest, let peerTerms else { return nil }
        let pushes = waiting.removeAll()
        for message in pushes where message.number != 0 && (message.isAwaited || message.isObserved) {
            actions.append(.messageEnded(number: message.number, message.isAwaited ? .unsent : .kept))
        }
        for details in details.values where details.isObserved {
            actions.append(.messageEnded(number: details.number, .kept))
        }
        for number in unplacedNumbers { actions.append(.messageEnded(number: number, .dropped)) }
        // Copied, because it is read while the log is being read.
        let facts = details
        let snapshot = SessionSnapshot(
            peerTerms: peerTerms,
            ownTerms: terms,
            ordinary: ordinary.snapshot { place, tag in
                switch tag.role {
                case .method: .method
                case .blank: .blank
                case .plain, .request, .awaited:
                    facts[place].flatMap { $0.snapshot(now: now) }.map { .special($0) } ?? .plain
                }
            },
            urgent: urgent.snapshot { _, _ in .plain },
            waiting: pushes.filter { !$0.isAwaited }.map { message in
                SessionSnapshot.Push(
                    method: message.method,
                    fields: message.fields,
                    payload: message.payload,
                    details: LaneSnapshot.Details(
                        key: message.delivery.key,
                        timeLeft: message.deadline.map { max($0 - now, .zero) }
                    )
                )
            },
            methods: zip(methods.names, pushCredits).map { name, credit in
                SessionSnapshot.OwnMethod(name: name, granted: credit.granted, used: credit.used)
            },
            peerMethods: zip(peerMethods, peerPushCredits).map { name, credit in
                SessionSnapshot.PeerMethod(name: name, received: credit.received, told: credit.told)
            },
            received: inbound.received,
            urgentReceived: urgentInbound.received,
            peerReceived: peerReceived
        )
        life.ended(.moved)
        forgetOutbound()
        actions.append(.ended(.moved))
        return snapshot
    }

    private var isAtRest: Bool {
        running.isEmpty && requests.count == 0 && inbound.unprocessedSize.frameCount == 0
            && unplacedSize.frameCount == 0 && !hasHeldCalls && !waiting.hasParts
    }
}

extension SessionMachine.MessageDetails {
    /// Returns nil when the message has no key or time to live that another server needs.
    fileprivate func snapshot(now: MonotonicTime) -> LaneSnapshot.Details? {
        // The credit of other messages ended with their calls.
        guard case .pushes = scope, key != nil || deadline != nil else { return nil }
        return LaneSnapshot.Details(key: key?.key, timeLeft: deadline.map { max($0 - now, .zero) })
    }
}

extension SessionGoodbye {
    /// The goodbye for a client that comes back while its session moves to another server.
    static var moving: SessionGoodbye {
        SessionGoodbye(.draining, "The session is about to go on at another server.", pause: .milliseconds(100))
    }
}

extension LaneSnapshot.Frame {
    /// Whether the frame's length prefix matches its bytes.
    fileprivate var isWhole: Bool {
        bytes.withUnsafeBytes { bytes in
            guard case .value(let length, let prefix) = Varint.decode(bytes, at: 0) else { return false }
            return length <= UInt64(Int32.max) && prefix + Int(length) == bytes.count
        }
    }
}

extension SessionSnapshot {
    /// Whether the snapshot is valid. Data from another server is checked before it is used.
    package var isSound: Bool {
        ordinary.isSound && urgent.isSound && urgent.frames.allSatisfy { $0.role == .plain && $0.isWhole }
            && ordinary.frames.allSatisfy { isSound($0) }
            && methods.count <= MethodNumbers.maximumCount && peerMethods.count <= MethodNumbers.maximumCount
            && Set(methods.map { ExactName($0.name) }).count == methods.count
            && Set(peerMethods.map { ExactName($0.name) }).count == peerMethods.count
            && ownTerms.credit >= SessionTerms.smallestCredit && peerReceived < ordinary.sentEnd
            && received < .max / 2 && urgentReceived < .max / 2
            && peerMethods.allSatisfy { $0.received < .max / 2 && $0.told < .max / 2 }
            && methods.allSatisfy { $0.used < .max / 2 && $0.granted < .max / 2 }
    }

    /// Whether a frame is valid, and its method is named.
    private func isSound(_ frame: LaneSnapshot.Frame) -> Bool {
        guard frame.isWhole else { return false }
        switch frame.role {
        case .method, .blank: return true
        case .plain, .special: break
        }
        return frame.bytes.withUnsafeBytes { bytes in
            guard let (kind, message) = SessionMachine.parsed(bytes) else { return true }
            return kind != .push && kind != .request || message.method >= 1 && message.method <= methods.count
        }
    }
}

extension SessionSnapshot {
    /// The pushes of a session that may be lost during the move. Another server may have taken the session
    /// nevertheless, so it is unknown what the client gets.
    package var messagesInDoubt: [SessionMessageInDoubt] {
        let sent = ordinary.frames.compactMap { frame -> SessionMessageInDoubt? in
            let push = frame.bytes.withUnsafeBytes { bytes in
                SessionMachine.parsed(bytes).flatMap { kind, message in
                    kind == .push ? (method: message.method, payload: [UInt8](message.payload)) : nil
                }
            }
            guard let push, push.method >= 1, push.method <= methods.count else { return nil }
            return SessionMessageInDoubt(
                method: methods[Int(push.method) - 1].name,
                delivery: frame.role.details?.delivery ?? .reliable,
                payload: push.payload,
                outcome: .inDoubt
            )
        }
        let others = waiting.map { push in
            SessionMessageInDoubt(
                method: push.method,
                delivery: push.details.delivery,
                payload: push.payload,
                outcome: .inDoubt
            )
        }
        return sent + others
    }
}

extension LaneSnapshot.Role {
    fileprivate var details: LaneSnapshot.Details? { if case .special(let details) = self { details } else { nil } }
}
