package import LifelineCore

/// Something of the user's that a session carries.
package protocol SessionContent: Sendable {
    /// What each message takes in memory beside its content, with content or without: windows and limits count it.
    static var messageOverhead: Int { get }
    /// Its size in bytes, without that: see docs/session-protocol.md.
    var byteCount: Int { get }
    /// Whether it has more metadata, or more details, than a message may have. Asked of messages over 8 KiB only, as
    /// what is too much counts for more.
    var exceedsLimits: Bool { get }
    /// The length of a frame that carries it, at most.
    var maximumFrameLength: Int { get }
    /// The status that answers a refused request, or replaces a refused response. At most 1 KiB.
    static func refusal(_ refusal: RequestRefusal) -> Self
    /// What it calls, empty where it belongs to a request: keys of deliveries are this method's own.
    var method: String { get }
}

/// What one end of a session says to the other. Pings and pongs are the connection's own business.
///
/// What is rare is large, and stands elsewhere, so that little is copied of a message's frame.
package enum SessionFrame<Content: SessionContent>: Sendable {
    indirect case hello(SessionHello)
    indirect case welcome(SessionWelcome)
    /// A message with its place, if it has one; an acknowledgement alone is a blank one without a place.
    case message(SessionPlace?, SessionAcknowledgement, SessionMessage<Content>)
    indirect case goodbye(SessionGoodbye)
}

/// A message that has a place in its lane, or would have one.
///
/// What it is stands apart from what the user says, so that nothing of the latter is copied to look at the former.
package struct SessionMessage<Content: SessionContent>: Sendable {
    package enum Kind: Sendable {
        /// Asks for a response; with the time at which who asks stops to wait.
        case request(serial: UInt32, deadline: MonotonicTime?)
        /// Ends the request of the serial, and the pushes that belong to it, if there are any.
        case response(serial: UInt32, endsPushes: Bool)
        /// Belongs to the request of the serial, or to none (0).
        case push(serial: UInt32)
        /// The response of the serial is not waited for any more.
        case cancel(serial: UInt32)
        /// Nothing: the place of a message that is not worth sending any more, or that a later version added.
        case blank
    }

    package let kind: Kind
    /// What the user says: of a request, a response or a push.
    package let content: Content?
    /// Its size as windows count it.
    package let byteCount: Int

    private init(_ kind: Kind, _ content: Content? = nil) {
        self.kind = kind
        self.content = content
        byteCount = Content.messageOverhead + (content?.byteCount ?? 0)
    }

    package static func request(serial: UInt32, deadline: MonotonicTime?, _ content: Content) -> SessionMessage {
        SessionMessage(.request(serial: serial, deadline: deadline), content)
    }

    package static func response(serial: UInt32, endsPushes: Bool, _ content: Content) -> SessionMessage {
        SessionMessage(.response(serial: serial, endsPushes: endsPushes), content)
    }

    package static func push(serial: UInt32, _ content: Content) -> SessionMessage {
        SessionMessage(.push(serial: serial), content)
    }

    package static func cancel(serial: UInt32) -> SessionMessage { SessionMessage(.cancel(serial: serial)) }

    package static var blank: SessionMessage { SessionMessage(.blank) }

    var isBlank: Bool { if case .blank = kind { true } else { false } }

    /// Whether it has more metadata, or more details, than a message may have.
    var exceedsLimits: Bool { byteCount > 8 << 10 && content?.exceedsLimits == true }

    /// The length of its frame, at most; 0 where it is far below every limit.
    var maximumFrameLength: Int { content?.maximumFrameLength ?? 0 }

    /// Of the messages of one scope, the newest of each key counts.
    func replacementKey(_ key: String) -> ReplacementKey? {
        guard case .push(let serial) = kind, let content else { return nil }
        return ReplacementKey(serial: serial, method: content.method, key: key)
    }

    /// The lane in which it is sent.
    var lane: SessionLane {
        switch kind {
        case .request, .push, .response(_, endsPushes: true), .blank: .ordinary
        case .response, .cancel: .urgent
        }
    }

    /// Whether it belongs to something that the peer knows, and means nothing to a peer that has lost the session.
    var isOfThisSession: Bool {
        switch kind {
        case .response, .cancel, .blank: true
        case .push(let serial): serial != 0
        case .request: false
        }
    }

    /// Whether it may stand in a lane.
    func mayStand(in lane: SessionLane) -> Bool {
        switch kind {
        case .request, .push: lane == .ordinary
        case .response, .cancel, .blank: true
        }
    }
}

/// A key of a delivery, with what it is a key of: a method, or the request of a serial.
struct ReplacementKey: Hashable, Sendable {
    let serial: UInt32
    let method: String
    let key: String
}

extension MonotonicTime? {
    /// The earlier of two deadlines, of which there may be none. It is asked for after every event, and so makes no
    /// array.
    package static func earliest(_ first: MonotonicTime?, _ second: MonotonicTime?) -> MonotonicTime? {
        guard let first, let second else { return first ?? second }
        return min(first, second)
    }
}

extension MonotonicTime {
    /// What a request that is sent now says of its deadline: whole milliseconds, at least 1, as 0 stands for none.
    package func timeoutMilliseconds(now: MonotonicTime) -> UInt64 {
        guard self > now else { return 1 }
        let (rest, overflow) = self.nanoseconds.subtractingReportingOverflow(now.nanoseconds)
        let nanoseconds = UInt64(overflow ? .max : rest)
        return nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
    }
}
