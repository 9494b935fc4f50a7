import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import NIOConcurrencyHelpers
import TestProtos

@testable import Lifeline

/// Runs a session server on a manual clock.
func withServer(
    _ methods: SessionMethod...,
    log: TestLog = TestLog(),
    configure: (inout SessionServerConfiguration) -> Void = { _ in },
    _ body: (SessionServer, ManualClock) async throws -> Void
) async throws {
    try await withServer(methods, log: log, configure: configure, body)
}

func withServer(
    _ methods: [SessionMethod],
    log: TestLog = TestLog(),
    services: [any SessionService] = [],
    interceptors: [any SessionServerInterceptor] = [],
    configure: (inout SessionServerConfiguration) -> Void = { _ in },
    _ body: (SessionServer, ManualClock) async throws -> Void
) async throws {
    var configuration = SessionServerConfiguration()
    configuration.server.shutdownGracePeriod = .zero
    configure(&configuration)
    let clock = ManualClock()
    try await withSessionServer(
        listeningOn: [anyPort],
        configuration: configuration,
        services: methods.map { TestService($0) } + services,
        interceptors: interceptors,
        logger: log.logger,
        transport: NIOTransport.shared,
        clock: clock
    ) { server in
        try await body(server, clock)
    }
}

/// A client that sends the frames that a test chooses. It names methods by itself before their first use, and counts
/// the places of the frames that it reads. Read from one task at a time.
final class RawSessionClient: Sendable {
    typealias Frame = Lifeline_Session_V1_Frame

    fileprivate struct State {
        /// The method numbers that it has assigned.
        var methods: [String: UInt32]
        /// How many frames it has read of each lane.
        var ordinary: UInt64 = 0
        var urgent: UInt64 = 0
        /// The client's ordinary places that the server has acknowledged: all up to one place, and single ones above
        /// it.
        var acknowledged: UInt64 = 0
        var acknowledgedAbove: Set<UInt64> = []
        /// Received bytes. Those from `start` on are unread.
        var bytes: [UInt8] = []
        var start = 0
    }

    let socket: RawSocket
    private let state: NIOLockedValueBox<State>

    /// - Parameter methods: the method numbers that the session already has.
    init(socket: RawSocket, methods: [String: UInt32] = [:]) {
        self.socket = socket
        state = NIOLockedValueBox(State(methods: methods))
    }

    /// - Parameter methods: the method numbers that the session already has.
    static func connect(to server: SessionServer, methods: [String: UInt32] = [:]) async throws -> RawSessionClient {
        guard case .tcp(_, let port) = try await server.boundEndpoints[0].address else { throw CancellationError() }
        return RawSessionClient(socket: try await RawSocket.connect(toPort: Int(port)), methods: methods)
    }

    /// The numbers that it has assigned to methods.
    var methods: [String: UInt32] { state.withLockedValue { $0.methods } }

    /// How many ordinary frames it has read over this connection.
    var ordinaryCount: UInt64 { state.withLockedValue { $0.ordinary } }

    /// How many urgent frames it has read over this connection.
    var urgentCount: UInt64 { state.withLockedValue { $0.urgent } }

    /// Whether the frames read so far acknowledge the ordinary frame at a place.
    func isAcknowledged(_ place: UInt64) -> Bool {
        state.withLockedValue { place <= $0.acknowledged || $0.acknowledgedAbove.contains(place) }
    }

    // MARK: Sending

    func send(_ frames: Frame...) async throws {
        try await socket.write(try frames.flatMap { frame in try frame.withDelimitedBytes { Array($0) } })
    }

    /// Sends a hello, and returns the answer.
    func hello(_ populate: (inout Lifeline_Session_V1_Hello) -> Void = { _ in }) async throws -> Frame {
        try await sayHello(populate)
        return try await next()
    }

    func sayHello(_ populate: (inout Lifeline_Session_V1_Hello) -> Void = { _ in }) async throws {
        try await send(.hello(populate))
    }

    /// Sends a hello for an existing session, and returns the answer.
    func resume(
        _ welcome: Lifeline_Session_V1_Welcome,
        attempt: UInt64 = 2,
        _ populate: (inout Lifeline_Session_V1_Hello) -> Void = { _ in }
    ) async throws -> Frame {
        try await hello {
            ($0.sessionID, $0.token, $0.attempt) = (welcome.sessionID, welcome.token, attempt)
            populate(&$0)
        }
    }

    /// Returns the number of a method. Names the method first if it has none.
    @discardableResult
    func name(_ method: String) async throws -> UInt32 {
        let (number, isNew) = state.withLockedValue { state in
            if let number = state.methods[method] { return (number, false) }
            let number = UInt32(state.methods.count + 1)
            state.methods[method] = number
            return (number, true)
        }
        if isNew { try await send(.method(number, method)) }
        return number
    }

    /// Pushes a message. The message takes a place, and so does the name of a new method.
    func push(
        _ method: String,
        _ payload: [UInt8] = [],
        _ populate: (inout Lifeline_Session_V1_Push) -> Void = { _ in }
    ) async throws {
        let number = try await name(method)
        try await send(
            .with {
                ($0.push.method, $0.push.payload) = (number, payload)
                populate(&$0.push)
            }
        )
    }

    /// Sends a request. The request takes a place, and so does the name of a new method.
    func ask(
        _ method: String,
        serial: UInt32 = 1,
        _ payload: [UInt8] = [],
        hasParts: Bool = false,
        _ populate: (inout Lifeline_Session_V1_Request) -> Void = { _ in }
    ) async throws {
        let number = try await name(method)
        try await send(
            .with {
                ($0.request.serial, $0.request.method, $0.request.payload) = (serial, number, payload)
                $0.request.partsFollow = hasParts
                populate(&$0.request)
            }
        )
    }

    /// Sends a message of a request's stream.
    func sendPart(_ payload: [UInt8] = [], of serial: UInt32 = 1) async throws {
        try await send(.part(payload, of: serial))
    }

    /// Ends a request's stream.
    func endParts(of serial: UInt32 = 1) async throws {
        try await send(.end(of: serial))
    }

    func acknowledge(ordinary: UInt64 = 0, urgent: UInt64 = 0) async throws {
        try await send(
            .with { ($0.acknowledgement.ordinary, $0.acknowledgement.urgent) = (ordinary, urgent) }
        )
    }

    /// Acknowledges all frames that were read over this connection, which must be the session's first one.
    func acknowledgeAll() async throws {
        try await acknowledge(ordinary: ordinaryCount, urgent: urgentCount)
    }

    // MARK: Reading

    /// The next frame of any kind.
    func nextFrame() async throws -> Frame {
        while true {
            if let frame = try state.withLockedValue({ try $0.takeFrame() }) { return frame }
            let bytes = try await socket.readSome(64 << 10)
            if bytes.isEmpty { throw CancellationError() }
            state.withLockedValue { $0.bytes += bytes }
        }
    }

    /// The next frame that is not an acknowledgement, a credit or a method name.
    func next() async throws -> Frame {
        while true {
            let frame = try await nextFrame()
            switch frame.kind {
            case .acknowledgement?, .credit?, .method?, nil: continue
            default: return frame
            }
        }
    }

    /// Whether the server has ended its side without further frames except acknowledgements.
    func isEnded() async throws -> Bool {
        do {
            _ = try await next()
            return false
        } catch {
            return true
        }
    }
}

extension RawSessionClient.State {
    /// The first frame that has arrived whole; nil if there is none.
    fileprivate mutating func takeFrame() throws -> RawSessionClient.Frame? {
        var (length, index) = (0, start)
        while true {
            guard index < bytes.count else { return nil }
            length |= Int(bytes[index] & 0x7F) << (7 * (index - start))
            index += 1
            if bytes[index - 1] < 0x80 { break }
        }
        guard bytes.count - index >= length else { return nil }
        let frame = try RawSessionClient.Frame(serializedBytes: Array(bytes[index..<index + length]))
        start = index + length
        if start >= 64 << 10 || start == bytes.count {
            bytes.removeFirst(start)
            start = 0
        }
        switch frame.kind?.lane {
        case .ordinary?: ordinary += 1
        case .urgent?: urgent += 1
        case nil: break
        }
        if case .acknowledgement(let acknowledgement)? = frame.kind { take(acknowledgement) }
        return frame
    }

    private mutating func take(_ acknowledgement: Lifeline_Session_V1_Acknowledgement) {
        acknowledged = max(acknowledged, acknowledgement.ordinary)
        var place = acknowledgement.ordinary
        var isGap = true
        for number in acknowledgement.ranges {
            if !isGap { acknowledgedAbove.formUnion(place + 1...place + number) }
            place += number
            isGap.toggle()
        }
    }
}

extension Lifeline_Session_V1_Frame.OneOf_Kind {
    /// The lane in which the frame has a place.
    fileprivate var lane: SessionLane? {
        switch self {
        case .push, .request, .requestPart, .requestEnd, .responsePart, .response, .method, .blank: .ordinary
        case .urgentResponse, .cancel: .urgent
        default: nil
        }
    }
}

extension Lifeline_Session_V1_Frame {
    /// A hello for a new session, with the terms of tests.
    static func hello(_ populate: (inout Lifeline_Session_V1_Hello) -> Void = { _ in }) -> Self {
        .with {
            ($0.hello.minimumVersion, $0.hello.maximumVersion, $0.hello.attempt) = (1, 1, 1)
            $0.hello.terms = .test
            populate(&$0.hello)
        }
    }

    static func method(_ number: UInt32, _ name: String) -> Self {
        .with { ($0.method.number, $0.method.name) = (number, name) }
    }

    /// A message of a request's stream.
    static func part(_ payload: [UInt8] = [], of serial: UInt32 = 1) -> Self {
        .with { ($0.requestPart.serial, $0.requestPart.payload) = (serial, payload) }
    }

    /// The end of a request's stream.
    static func end(of serial: UInt32 = 1) -> Self { .with { $0.requestEnd.serial = serial } }
}

extension Lifeline_Session_V1_Terms {
    /// The terms of a peer with small limits.
    static var test: Self {
        .with {
            ($0.windowFrames, $0.windowBytes, $0.credit, $0.maximumRequests) = (100, 100_000, 256 << 10, 100)
        }
    }
}
