internal import Lifeline
internal import LifelineMessages

extension Lifeline_Fleet_V1_ParkedSession {
    /// The only format so far.
    static var presentFormat: UInt32 { 1 }

    init(_ snapshot: SessionSnapshot, subject: String?, _ memberships: [Lifeline_Fleet_V1_ParkedSession.Membership]) {
        self.init()
        format = Self.presentFormat
        if let subject { self.subject = subject }
        clientTerms = Terms(snapshot.peerTerms)
        serverTerms = Terms(snapshot.ownTerms)
        ordinary = Lane(snapshot.ordinary)
        urgent = Lane(snapshot.urgent)
        for push in snapshot.waiting {
            waiting.append(
                .with {
                    $0.method = push.method
                    $0.fields = push.fields
                    $0.payload = push.payload
                    $0.promise = Promise(push.details)
                }
            )
        }
        for method in snapshot.methods {
            serverMethods.append(.with { ($0.name, $0.granted, $0.used) = (method.name, method.granted, method.used) })
        }
        for method in snapshot.peerMethods {
            clientMethods.append(
                .with { ($0.name, $0.received, $0.told) = (method.name, method.received, method.told) }
            )
        }
        (received, urgentReceived, clientReceived) =
            (snapshot.received, snapshot.urgentReceived, snapshot.peerReceived)
        self.memberships.append(contentsOf: memberships)
    }

    /// The snapshot; nil if it is not a valid session.
    var snapshot: SessionSnapshot? {
        guard format == Self.presentFormat else { return nil }
        let snapshot = SessionSnapshot(
            peerTerms: clientTerms.terms,
            ownTerms: serverTerms.terms,
            ordinary: ordinary.snapshot,
            urgent: urgent.snapshot,
            waiting: waiting.map { push in
                SessionSnapshot.Push(
                    method: push.method,
                    fields: [UInt8](push.fields),
                    payload: [UInt8](push.payload),
                    details: push.promise.details
                )
            },
            methods: serverMethods.map { SessionSnapshot.OwnMethod(name: $0.name, granted: $0.granted, used: $0.used) },
            peerMethods: clientMethods.map {
                SessionSnapshot.PeerMethod(name: $0.name, received: $0.received, told: $0.told)
            },
            received: received,
            urgentReceived: urgentReceived,
            peerReceived: clientReceived
        )
        return snapshot.isSound ? snapshot : nil
    }
}

extension Lifeline_Fleet_V1_ParkedSession.Terms {
    fileprivate init(_ terms: SessionTerms) {
        self.init()
        windowFrames = UInt32(clamping: terms.window.frameCount)
        windowBytes = UInt64(clamping: terms.window.byteCount)
        credit = UInt64(clamping: terms.credit)
        maximumRequests = UInt32(clamping: terms.maximumRequestCount)
        maximumFrame = UInt32(clamping: terms.maximumFrameLength)
    }

    fileprivate var terms: SessionTerms {
        SessionTerms(
            window: SessionWindow(frameCount: Int(windowFrames), byteCount: Int(clamping: windowBytes)),
            credit: Int(clamping: credit),
            maximumRequestCount: Int(maximumRequests),
            maximumFrameLength: Int(maximumFrame)
        )
    }
}

extension Lifeline_Fleet_V1_ParkedSession.Lane {
    fileprivate init(_ lane: LaneSnapshot) {
        self.init()
        (next, sentEnd) = (lane.next, lane.sentEnd)
        for frame in lane.frames {
            frames.append(
                .with {
                    ($0.place, $0.bytes) = (frame.place, frame.bytes)
                    switch frame.role {
                    case .plain: break
                    case .special(let details): $0.role = .promise(.init(details))
                    case .method: $0.role = .isMethod(true)
                    case .blank: $0.role = .isBlank(true)
                    }
                }
            )
        }
    }

    fileprivate var snapshot: LaneSnapshot {
        LaneSnapshot(
            next: next,
            sentEnd: sentEnd,
            frames: frames.map { frame in
                LaneSnapshot.Frame(place: frame.place, bytes: [UInt8](frame.bytes), role: frame.snapshotRole)
            }
        )
    }
}

extension Lifeline_Fleet_V1_ParkedSession.Frame {
    fileprivate var snapshotRole: LaneSnapshot.Role {
        switch role {
        case .promise(let promise): .special(promise.details)
        case .isMethod(true): .method
        case .isBlank(true): .blank
        case .isMethod(false), .isBlank(false), nil: .plain
        }
    }
}

extension Lifeline_Fleet_V1_ParkedSession.Promise {
    fileprivate init(_ details: LaneSnapshot.Details) {
        self.init()
        if let key = details.key { self.key = key }
        if let timeLeft = details.timeLeft { nanosecondsLeft = UInt64(max(timeLeft / .nanoseconds(1), 0)) }
    }

    fileprivate var details: LaneSnapshot.Details {
        LaneSnapshot.Details(
            key: hasKey ? key : nil,
            timeLeft: hasNanosecondsLeft ? .nanoseconds(Int64(clamping: nanosecondsLeft)) : nil
        )
    }
}
