import Lifeline
import LifelineCore
import LifelineMessages
import LifelineWellKnownTypes
import TestProtos

/// Compares the hand-written parser with an oracle: the code that is generated from the same messages.
struct FrameOracle {
    /// The disagreements of the two about the bytes of a frame.
    /// - Parameter isValid: whether both have to accept the frame.
    static func disagreements(_ bytes: [UInt8], isValid: Bool = false) -> [String] {
        var comparison = FrameOracle(oracle: try? Lifeline_Session_V1_Frame(serializedBytes: bytes))
        if isValid { comparison.check(comparison.oracle != nil, "the oracle takes it") }
        bytes.withUnsafeBytes { bytes in
            do throws(SessionViolation) {
                let frame = try InboundFrame(parsing: bytes)
                guard let kind = frame.kind else { return comparison.check(comparison.oracle?.kind == nil, "kind") }
                try comparison.compare(kind, frame.body)
            } catch {
                comparison.check(!isValid, "the hand-written code takes it")
                guard case .undecodable("It is no protobuf message.") = error else { return }
                comparison.check(comparison.oracle == nil, "only the oracle takes it")
            }
        }
        return comparison.disagreements
    }

    private let oracle: Lifeline_Session_V1_Frame?
    private var disagreements: [String] = []

    private init(oracle: Lifeline_Session_V1_Frame?) { self.oracle = oracle }

    private mutating func check(_ holds: Bool, _ what: String) {
        if !holds { disagreements.append(what) }
    }

    private mutating func compare(
        _ kind: FrameKind,
        _ body: UnsafeRawBufferPointer
    ) throws(SessionViolation) {
        switch kind {
        case .push, .request, .requestPart, .requestEnd, .responsePart, .response, .urgentResponse, .cancel,
            .unplacedPush, .unplacedRequestPart, .unplacedResponsePart:
            let message = try InboundMessage(kind, body)
            guard let oracle else { return check(false, "only the hand-written code takes it") }
            check(Fields(message) == Fields(oracle), "fields")
        case .acknowledgement:
            let acknowledgement = try Acknowledgement(parsing: body)
            check(acknowledgement.ordinary == oracle?.acknowledgement.ordinary, "ordinary")
            check(acknowledgement.urgent == oracle?.acknowledgement.urgent, "urgent")
            check(acknowledgement.ranges.count * 2 == oracle?.acknowledgement.ranges.count, "ranges")
        case .credit:
            let credit = try CreditGrant(parsing: body)
            check(credit.bytes == oracle?.credit.bytes, "credit")
        case .method:
            let method = try MethodName(parsing: body)
            check(method.number == oracle?.method.number && method.name == oracle?.method.name, "method")
        case .hello:
            let hello = try ClientOpening(parsing: body)
            check(hello.attempt == oracle?.hello.attempt && hello.name == oracle?.hello.name, "hello")
            check(hello.progress.received == oracle?.hello.progress.received, "progress")
            check(
                hello.store?.id.bytes ?? [] == oracle.flatMap { Self.store($0.hello.store) } ?? [],
                "store of a hello"
            )
            check(hello.metadata.count == oracle?.hello.metadata.count, "metadata of a hello")
        case .welcome:
            let welcome = try ServerOpening(parsing: body)
            check(welcome.store?.floor ?? 0 == (welcome.store == nil ? 0 : oracle?.welcome.store.floor), "floor")
            check(welcome.isResumed == oracle?.welcome.resumed, "resumed")
            check(welcome.version == oracle?.welcome.version, "version")
            check(welcome.progress.urgent == oracle?.welcome.progress.urgent, "progress")
        case .goodbye:
            let goodbye = try SessionGoodbye(parsing: body)
            check(oracle != nil, "goodbye")
            check(
                (goodbye.code?.rawValue).map(Int.init) ?? 0 == oracle?.goodbye.code.rawValue || goodbye.code == nil,
                "code"
            )
        case .ping:
            let number = try HeartbeatFrame.number(parsing: body)
            check(number == oracle?.ping.number, "ping")
        default:
            break
        }
    }

    /// The id of a store; nil where it has none.
    private static func store(_ store: Lifeline_Session_V1_Store) -> [UInt8]? { store.id.count == 16 ? store.id : nil }

    /// The fields of a message, read by either code.
    private struct Fields: Equatable {
        var serial: UInt32 = 0
        var method: UInt32 = 0
        var status: UInt32 = 0
        var timeout: UInt64 = 0
        var hasParts = false
        var durable: UInt64 = 0
        var floor: UInt64 = 0
        var isCall = false
        /// The number of a reply.
        var number: UInt64?
        var payload: [UInt8] = []
        var text = ""
        var metadata: [String: String] = [:]
        var details: [[UInt8]] = []

        init(_ message: InboundMessage) {
            (serial, method, status) = (message.serial, message.method, message.status)
            (timeout, hasParts) = (message.timeoutMilliseconds, message.hasParts)
            (durable, floor, isCall) = (message.durable, message.floor, message.isCall)
            number = message.isReply ? message.replyNumber : nil
            payload = [UInt8](message.payload)
            text = message.textString
            metadata = message.metadata
            details = message.details.map { [UInt8]($0.typeURL.utf8) + [0] + $0.value }
        }

        init(_ frame: Lifeline_Session_V1_Frame) {
            switch frame.kind {
            case .push(let push), .unplacedPush(let push):
                (method, payload, durable) = (push.method, push.payload, push.durable)
                (floor, isCall) = (push.floor, push.asksForReply)
                guard push.hasReply else {
                    metadata = Self.dictionary(push.metadata)
                    return
                }
                let reply = push.reply
                (number, status, text) = (reply.number, reply.status, reply.message)
                metadata = Self.dictionary(reply.metadata)
                details = reply.details.map { [UInt8]($0.typeURL.utf8) + [0] + $0.value }
            case .request(let request):
                (serial, method, timeout) = (request.serial, request.method, request.timeoutMilliseconds)
                (hasParts, payload) = (request.partsFollow, request.payload)
                metadata = Self.dictionary(request.metadata)
            case .requestPart(let part), .unplacedRequestPart(let part):
                (serial, payload) = (part.serial, part.payload)
            case .responsePart(let part), .unplacedResponsePart(let part):
                (serial, payload) = (part.serial, part.payload)
            case .requestEnd(let end): serial = end.serial
            case .cancel(let cancel): serial = cancel.serial
            case .response(let response), .urgentResponse(let response):
                (serial, status, text) = (response.serial, response.status, response.message)
                payload = response.payload
                metadata = Self.dictionary(response.metadata)
                details = response.details.map { [UInt8]($0.typeURL.utf8) + [0] + $0.value }
            default: break
            }
        }

        private static func dictionary(_ map: MapField<String, String>) -> [String: String] {
            Dictionary(map.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
        }
    }
}
