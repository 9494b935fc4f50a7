internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// Reads the bytes of all connections between the clients and servers of a world, and checks that their frames keep the
/// rules of the session protocol. It counts places, windows and credit by itself.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class SessionWitness: @unchecked Sendable {
    /// The number of frames of some kinds, and of some events of connections.
    struct Counts {
        var connections = 0
        /// Connections that ended with a part of a frame unread.
        /// The connections that ended within a frame.
        var cutFrames = 0
        var resumes = 0
        var newSessions = 0
        /// Hellos that a newer one had overtaken.
        var overtakenHellos = 0
        /// Hellos without an answer.
        var lateWelcomes = 0
        /// Connections that a newer one replaced.
        var replacedConnections = 0
        /// Goodbyes of servers that shut down, and of those that had no room for a frame.
        var drainings = 0
        var sentAwayClients = 0
        var resentFrames = 0
        var blanks = 0
        /// Acknowledgements with ranges.
        var acknowledgedRanges = 0
        var grants = 0
        var bytes = 0
    }

    /// A message of a user, or a request, on its way.
    struct Message {
        let isRequest: Bool
        /// The number in its `SessionNote`; nil if it has none.
        let number: Int?
        /// Its number in the store of its sender; 0 if it is not durable.
        let durable: UInt64
        let isByClient: Bool
        /// The time at which its sender began to use the connection.
        let openedAt: Duration
        /// The time at which its sender learnt that the peer goes away.
        let leftAt: Duration?
    }

    /// Both directions of a connection. The client's direction is the first one.
    private final class Connection {
        var written = [FrameSplitter(), FrameSplitter()]
        var read = [FrameSplitter(), FrameSplitter()]
        var hello: ClientOpening?
        var session: SessionID?
        var isAnswered = false
        /// The times at which the client and the server began to send messages.
        var openedAt = [Duration.zero, .zero]
        /// Whether the client has read the welcome.
        var isOpen = false
        /// The time at which the client has read that the server goes away.
        var leftAt: Duration?
        var isOver = false
        /// Whether its end has cut a frame.
        var isCut = false
    }

    private let now: () -> Duration
    private let fail: (String) -> Void
    private var connections: [Int: Connection] = [:]
    private var clients: [SessionID: WitnessedEnd] = [:]
    private var servers: [SessionID: WitnessedEnd] = [:]
    /// The attempt of the newest hello that was let in.
    private var attempts: [SessionID: UInt64] = [:]
    private(set) var counts = Counts()
    /// Called with each message that is written.
    var onMessage: (Message) -> Void = { _ in }
    /// Whether the receiver has processed the push of this number.
    var isProcessed: (Int) -> Bool = { _ in true }

    /// - Parameter now: the time in the world.
    init(now: @escaping () -> Duration, fail: @escaping (String) -> Void) { (self.now, self.fail) = (now, fail) }

    func saw(_ traffic: Traffic) {
        let connection = connection(traffic.connection)
        let side = traffic.isByClient ? 0 : 1
        switch traffic.event {
        case .wrote(let bytes):
            counts.bytes += bytes.count
            for frame in connection.written[side].split(bytes) {
                wrote(frame, traffic.connection, connection, isByClient: traffic.isByClient)
            }
        case .read(let bytes):
            for frame in connection.read[side].split(bytes) {
                read(frame, traffic.connection, connection, isByClient: traffic.isByClient)
            }
        case .ended:
            if connection.read[side].isWithinFrame, !connection.isCut {
                connection.isCut = true
                counts.cutFrames += 1
            }
            if traffic.isByClient, connection.hello != nil, !connection.isAnswered { counts.lateWelcomes += 1 }
            // Both ends report it.
            if connection.isOver { connections[traffic.connection] = nil }
            connection.isOver = true
        }
    }

    private func connection(_ number: Int) -> Connection {
        if let connection = connections[number] { return connection }
        let connection = Connection()
        connections[number] = connection
        return connection
    }

    /// The end that writes or reads over a connection; nil if another connection has its session.
    private func end(_ number: Int, _ connection: Connection, isByClient: Bool) -> WitnessedEnd? {
        guard let session = connection.session, !isByClient || connection.isOpen else { return nil }
        let end = isByClient ? clients[session] : servers[session]
        return end?.connection == number ? end : nil
    }

    // MARK: Writing

    private func wrote(_ frame: [UInt8], _ number: Int, _ connection: Connection, isByClient: Bool) {
        frame.withUnsafeBytes { bytes in
            guard let inner = try? InboundFrame(parsing: bytes), let kind = inner.kind else {
                return fail("a malformed frame is written")
            }
            switch kind {
            case .hello: saidHello(inner.body, connection, isByClient: isByClient)
            case .welcome: saidWelcome(inner.body, number, connection, isByClient: isByClient)
            case .goodbye: saidGoodbye(inner.body, connection, isByClient: isByClient)
            case .ping, .pong: break
            default:
                guard connection.session != nil, !isByClient || connection.isOpen else {
                    return fail("a frame of kind \(kind.rawValue) comes before the opening")
                }
                guard let end = end(number, connection, isByClient: isByClient) else { return }
                end.wrote(frame, kind, inner.body, &counts, isProcessed)
                noteMessage(kind, inner.body, connection, isByClient: isByClient)
            }
        }
    }

    private func saidHello(_ body: UnsafeRawBufferPointer, _ connection: Connection, isByClient: Bool) {
        guard isByClient, connection.hello == nil, let hello = try? ClientOpening(parsing: body) else {
            return fail("a hello is written by a server, twice, or malformed")
        }
        connection.hello = hello
        counts.connections += 1
        guard let id = hello.credentials?.id, let end = clients[id] else { return }
        end.checkOpening(hello.progress, isProcessed)
    }

    private func saidWelcome(
        _ body: UnsafeRawBufferPointer,
        _ number: Int,
        _ connection: Connection,
        isByClient: Bool
    ) {
        guard !isByClient, connection.session == nil, let hello = connection.hello,
            let welcome = try? ServerOpening(parsing: body)
        else { return fail("a welcome is written by a client, without a hello, twice, or malformed") }
        let id = welcome.credentials.id
        (connection.session, connection.isAnswered, connection.openedAt[1]) = (id, true, now())
        if welcome.isResumed {
            counts.resumes += 1
            guard let end = servers[id], hello.credentials?.id == id else {
                return fail("a session is resumed that the client did not name")
            }
            if hello.attempt <= attempts[id] ?? 0 { fail("an older hello takes the session from a newer one") }
            end.checkOpening(welcome.progress, isProcessed)
            end.resume(over: number, hello.terms, behind: hello.progress, received: welcome.progress)
        } else {
            counts.newSessions += 1
            if servers[id] != nil { fail("two sessions have the same id") }
            servers[id] = WitnessedEnd("the server", over: number, hello.terms, fail: fail)
        }
        attempts[id] = hello.attempt
    }

    private func saidGoodbye(_ body: UnsafeRawBufferPointer, _ connection: Connection, isByClient: Bool) {
        guard let goodbye = try? SessionGoodbye(parsing: body) else { return fail("a goodbye is malformed") }
        connection.isAnswered = true
        switch goodbye.code {
        case .replaced where connection.session == nil: counts.overtakenHellos += 1
        case .replaced: counts.replacedConnections += 1
        case .draining where goodbye.message == SessionMachine.noMemoryMessage: counts.sentAwayClients += 1
        case .draining where connection.session != nil: counts.drainings += 1
        case .violation, .version: fail("\(isByClient ? "the client" : "the server") accuses: \(goodbye.message)")
        default: break
        }
    }

    private func noteMessage(
        _ kind: FrameKind,
        _ body: UnsafeRawBufferPointer,
        _ connection: Connection,
        isByClient: Bool
    ) {
        switch kind {
        case .push, .request, .requestPart, .responsePart, .unplacedPush, .unplacedRequestPart, .unplacedResponsePart:
            guard let message = try? InboundMessage(kind, body) else { return fail("a message is malformed") }
            onMessage(
                Message(
                    isRequest: kind == .request,
                    number: SessionNote.number(message.payload),
                    durable: message.durable,
                    isByClient: isByClient,
                    openedAt: connection.openedAt[isByClient ? 0 : 1],
                    leftAt: isByClient ? connection.leftAt : nil
                )
            )
        default: break
        }
    }

    // MARK: Reading

    private func read(_ frame: [UInt8], _ number: Int, _ connection: Connection, isByClient: Bool) {
        frame.withUnsafeBytes { bytes in
            guard let inner = try? InboundFrame(parsing: bytes), let kind = inner.kind else { return }
            if kind == .welcome, isByClient, let welcome = try? ServerOpening(parsing: inner.body) {
                return readWelcome(welcome, number, connection)
            }
            if kind == .goodbye, isByClient, let goodbye = try? SessionGoodbye(parsing: inner.body),
                goodbye.code == .draining
            {
                connection.leftAt = now()
            }
            end(number, connection, isByClient: isByClient)?.read(frame, kind, inner.body)
        }
    }

    private func readWelcome(_ welcome: ServerOpening, _ number: Int, _ connection: Connection) {
        let id = welcome.credentials.id
        (connection.isOpen, connection.openedAt[0]) = (true, now())
        if welcome.isResumed {
            guard let end = clients[id], let hello = connection.hello else {
                return fail("a welcome resumes a session that the client does not have")
            }
            end.resume(over: number, welcome.terms, behind: welcome.progress, received: hello.progress)
        } else {
            clients[id] = WitnessedEnd("the client", over: number, welcome.terms, fail: fail)
        }
    }
}

/// Splits the bytes of a stream into frames without their length prefixes.
struct FrameSplitter {
    private var bytes: [UInt8] = []

    var isWithinFrame: Bool { !bytes.isEmpty }

    mutating func split(_ more: ArraySlice<UInt8>) -> [[UInt8]] {
        bytes += more
        var (frames, start) = ([[UInt8]](), 0)
        bytes.withUnsafeBytes { bytes in
            while case .value(let length, let prefix) = Varint.decode(bytes, at: start) {
                let end = start + prefix + Int(length)
                if end > bytes.count { break }
                frames.append([UInt8](bytes[start + prefix..<end]))
                start = end
            }
        }
        bytes.removeFirst(start)
        return frames
    }
}
