import Lifeline
import LifelineClientTestSupport
import NIOConcurrencyHelpers
import TestProtos

/// A frame from the client.
@dynamicMemberLookup
struct ClientFrame: Sendable {
    let frame: Lifeline_Session_V1_Frame
    /// Its place in its lane; 0 if it has none.
    let place: UInt64
    /// The name of the method that it refers to by number; empty if it refers to none.
    let methodName: String

    subscript<Value>(dynamicMember field: KeyPath<Lifeline_Session_V1_Frame, Value>) -> Value {
        frame[keyPath: field]
    }

    /// The encoded message of a push, a request or a part.
    var payload: [UInt8] {
        switch frame.kind {
        case .push(let push)?, .unplacedPush(let push)?: push.payload
        case .request(let request)?: request.payload
        case .requestPart(let part)?, .unplacedRequestPart(let part)?: part.payload
        default: []
        }
    }

    /// The number in its `TestMessage`; nil if it has none.
    var number: Int? { (try? TestMessage(serializedBytes: payload))?.number }

    /// Whether it is a blank, which holds the place of a message that is not sent.
    var isBlank: Bool { if case .blank? = frame.kind { true } else { false } }
}

/// The server's end of one connection, which a test scripts. It names methods before their first use, counts the places
/// of the client's frames, and keeps acknowledgements, credits and names apart from other frames. Read from one task at
/// a time.
final class ScriptedSessionServer: Sendable {
    typealias Frame = Lifeline_Session_V1_Frame

    /// The names of methods in a session.
    struct MethodNames {
        /// The names that the client has given, by number.
        var ofClient: [UInt32: String] = [:]
        /// The numbers that this server has assigned.
        var numbers: [String: UInt32] = [:]
    }

    fileprivate struct Inbound {
        var unread: [ClientFrame] = []
        /// The places of the last frames of the two lanes.
        var ordinary: UInt64 = 0
        var urgent: UInt64 = 0
        var acknowledgements: [Lifeline_Session_V1_Acknowledgement] = []
        var credits: [Lifeline_Session_V1_Credit] = []
    }

    let peer: ScriptedPeer
    private let inbound = NIOLockedValueBox(Inbound())
    private let names: NIOLockedValueBox<MethodNames>

    init(peer: ScriptedPeer, names: NIOLockedValueBox<MethodNames>) {
        self.peer = peer
        self.names = names
    }

    // MARK: Reading

    /// The next frame that is not an acknowledgement, a credit or a method name.
    func next() async throws -> ClientFrame {
        while true {
            try takeIn()
            let frame = inbound.withLockedValue { $0.unread.isEmpty ? nil : $0.unread.removeFirst() }
            if let frame { return frame }
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// The received frames that were not read with `next`.
    var unread: [ClientFrame] {
        get throws {
            try takeIn()
            return inbound.withLockedValue { $0.unread }
        }
    }

    /// The received acknowledgements, oldest first.
    var acknowledgements: [Lifeline_Session_V1_Acknowledgement] {
        get throws {
            try takeIn()
            return inbound.withLockedValue { $0.acknowledgements }
        }
    }

    /// The received credits, oldest first.
    var credits: [Lifeline_Session_V1_Credit] {
        get throws {
            try takeIn()
            return inbound.withLockedValue { $0.credits }
        }
    }

    /// Waits until the client has acknowledged the ordinary frames up to a place.
    func waitForAcknowledgement(of place: UInt64) async throws {
        while try acknowledgements.allSatisfy({ $0.ordinary < place }) {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Waits for the next credit, and removes it from the received ones.
    func nextCredit() async throws -> Lifeline_Session_V1_Credit {
        while try credits.isEmpty {
            try Task.checkCancellation()
            await Task.yield()
        }
        return inbound.withLockedValue { $0.credits.removeFirst() }
    }

    private func takeIn() throws {
        for frame in try sessionFrames(in: peer.read()) {
            inbound.withLockedValue { inbound in
                let place = inbound.place(of: frame)
                switch frame.kind {
                case .method(let method)?:
                    names.withLockedValue { $0.ofClient[method.number] = method.name }
                case .acknowledgement(let acknowledgement)?:
                    inbound.acknowledgements.append(acknowledgement)
                case .credit(let credit)?:
                    inbound.credits.append(credit)
                case nil:
                    break
                default:
                    let name = names.withLockedValue { $0.ofClient[frame.methodNumber] } ?? ""
                    inbound.unread.append(ClientFrame(frame: frame, place: place, methodName: name))
                }
            }
        }
    }

    // MARK: Sending

    /// Sends frames that arrive together.
    func send(_ frames: Frame...) throws {
        _ = peer.send(try frames.map { try $0.serializedBytes() })
    }

    /// Returns the number of a method. Names the method first if it has none.
    @discardableResult
    func name(_ method: String) throws -> UInt32 {
        let (number, isNew) = names.withLockedValue { names in
            if let number = names.numbers[method] { return (number, false) }
            let number = UInt32(names.numbers.count + 1)
            names.numbers[method] = number
            return (number, true)
        }
        if isNew { try send(.with { ($0.method.number, $0.method.name) = (number, method) }) }
        return number
    }

    /// Pushes a message. The message takes a place, and so does the name of a new method.
    func push(_ method: String, _ payload: [UInt8] = []) throws {
        let number = try name(method)
        try send(.with { ($0.push.method, $0.push.payload) = (number, payload) })
    }

    func push(_ method: String, _ message: TestMessage) throws {
        try push(method, message.serializedBytes())
    }

    /// Sends a message of the stream that answers a request.
    func sendPart(of request: ClientFrame, _ payload: [UInt8] = []) throws {
        try send(
            .with { ($0.responsePart.serial, $0.responsePart.payload) = (request.request.serial, payload) }
        )
    }

    func sendPart(of request: ClientFrame, _ message: TestMessage) throws {
        try sendPart(of: request, message.serializedBytes())
    }

    /// Ends a response with parts.
    func endParts(of request: ClientFrame) throws {
        try send(.with { $0.response.serial = request.request.serial })
    }

    /// Acknowledges a request, and replies to it: with a payload, or with the payload of the request.
    func reply(to request: ClientFrame, _ payload: [UInt8]? = nil) throws {
        try send(
            .with { $0.acknowledgement.ordinary = request.place },
            .with {
                $0.urgentResponse.serial = request.request.serial
                $0.urgentResponse.payload = payload ?? request.request.payload
            }
        )
    }

    /// Acknowledges ordinary frames up to a place.
    func acknowledge(place: UInt64) throws {
        try send(.with { $0.acknowledgement.ordinary = place })
    }

    /// Acknowledges an ordinary frame from the client, and those before it.
    func acknowledge(_ frame: ClientFrame) throws {
        try acknowledge(place: frame.place)
    }

    // MARK: Opening

    /// Reads the hello and welcomes the client.
    ///
    /// - Parameter terms: changes the terms.
    @discardableResult
    func welcome(
        id: UInt8 = 1,
        resumed: Bool = false,
        processed: UInt64 = 0,
        received: UInt64 = 0,
        urgent: UInt64 = 0,
        terms: (inout Lifeline_Session_V1_Terms) -> Void = { _ in }
    ) async throws -> Lifeline_Session_V1_Hello {
        let frame = try await next()
        try sendWelcome(
            id: id,
            resumed: resumed,
            processed: processed,
            received: received,
            urgent: urgent,
            terms: terms
        )
        return frame.hello
    }

    func sendWelcome(
        id: UInt8 = 1,
        resumed: Bool = false,
        processed: UInt64 = 0,
        received: UInt64 = 0,
        urgent: UInt64 = 0,
        terms: (inout Lifeline_Session_V1_Terms) -> Void = { _ in }
    ) throws {
        // A new session begins at the first place and without names.
        inbound.withLockedValue { ($0.ordinary, $0.urgent) = resumed ? (received, urgent) : (0, 0) }
        if !resumed { names.withLockedValue { $0 = MethodNames() } }
        try send(
            .with {
                $0.welcome.version = 1
                $0.welcome.sessionID = [UInt8](repeating: id, count: 16)
                $0.welcome.token = [UInt8](repeating: 9, count: 16)
                $0.welcome.resumed = resumed
                $0.welcome.progress.processed = processed
                $0.welcome.progress.received = received
                $0.welcome.progress.urgent = urgent
                $0.welcome.terms.windowFrames = 1_000
                $0.welcome.terms.windowBytes = 1 << 20
                $0.welcome.terms.credit = 1 << 20
                $0.welcome.terms.maximumRequests = 100
                terms(&$0.welcome.terms)
            }
        )
    }
}

extension ScriptedSessionServer.Inbound {
    /// The place of the next frame; 0 if it has none.
    fileprivate mutating func place(of frame: Lifeline_Session_V1_Frame) -> UInt64 {
        switch frame.kind {
        case .push, .request, .requestPart, .requestEnd, .responsePart, .response, .method, .blank:
            ordinary += 1
            return ordinary
        case .urgentResponse, .cancel:
            urgent += 1
            return urgent
        default:
            return 0
        }
    }
}

extension Lifeline_Session_V1_Frame {
    /// The method number that it refers to; 0: none.
    fileprivate var methodNumber: UInt32 {
        switch kind {
        case .push(let push)?, .unplacedPush(let push)?: push.method
        case .request(let request)?: request.method
        default: 0
        }
    }
}
