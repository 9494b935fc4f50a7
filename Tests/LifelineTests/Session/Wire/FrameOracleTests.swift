import Lifeline
import LifelineCore
import LifelineMessages
import LifelineWellKnownTypes
import TestProtos
import Testing

/// The hand-written wire beside the code that is generated from the same messages, which is the oracle.
struct FrameOracleTests {
    @Test func sampleFramesOfAllKindsAgree() {
        for frame in sampleFrames { expectAgreement(frame, isValid: true) }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func damagedFramesAgree(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<5_000 {
            var frame = sampleFrames.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...3, using: &random) { damage(&frame, &random) }
            expectAgreement(frame, isValid: false)
        }
    }

    private func damage(_ frame: inout [UInt8], _ random: inout SplitMix64) {
        guard !frame.isEmpty else { return frame.append(0x42) }
        // The front has the tags and lengths.
        let index = min(
            Int.random(in: 0..<frame.count, using: &random),
            Int.random(in: 0..<frame.count, using: &random)
        )
        switch Int.random(in: 0..<5, using: &random) {
        case 0: frame[index] = UInt8.random(in: 0...255, using: &random)
        case 1: frame[index] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 2: frame.remove(at: index)
        case 3: frame.insert(UInt8.random(in: 0...255, using: &random), at: index)
        default: frame.removeLast(frame.count - index)
        }
    }

    private func expectAgreement(_ bytes: [UInt8], isValid: Bool) {
        let oracle = try? Lifeline_Session_V1_Frame(serializedBytes: bytes)
        if isValid { #expect(oracle != nil) }
        bytes.withUnsafeBytes { bytes in
            do throws(SessionViolation) {
                let frame = try InboundFrame(parsing: bytes)
                guard let kind = frame.kind else { return check(oracle == nil || oracle?.kind == nil, bytes, "kind") }
                try compare(kind, frame.body, oracle, bytes)
            } catch {
                if isValid { Issue.record("\(Array(bytes)): \(error)") }
                guard case .undecodable("It is no protobuf message.") = error else { return }
                check(oracle == nil, bytes, "only the oracle takes it")
            }
        }
    }

    private func check(_ holds: Bool, _ bytes: UnsafeRawBufferPointer, _ what: String) {
        // Not #expect for each: there are hundreds of thousands.
        if !holds { Issue.record("\(what): \(Array(bytes))") }
    }

    private func compare(
        _ kind: FrameKind,
        _ body: UnsafeRawBufferPointer,
        _ oracle: Lifeline_Session_V1_Frame?,
        _ bytes: UnsafeRawBufferPointer
    ) throws(SessionViolation) {
        switch kind {
        case .push, .request, .requestPart, .requestEnd, .responsePart, .response, .urgentResponse, .cancel,
            .unplacedPush, .unplacedRequestPart, .unplacedResponsePart:
            let message = try InboundMessage(kind, body)
            guard let oracle else { return check(false, bytes, "only the hand-written code takes it") }
            check(Fields(message) == Fields(oracle), bytes, "fields")
        case .acknowledgement:
            let acknowledgement = try Acknowledgement(parsing: body)
            check(acknowledgement.ordinary == oracle?.acknowledgement.ordinary, bytes, "ordinary")
            check(acknowledgement.urgent == oracle?.acknowledgement.urgent, bytes, "urgent")
            check(acknowledgement.ranges.count * 2 == oracle?.acknowledgement.ranges.count, bytes, "ranges")
        case .credit:
            let credit = try CreditGrant(parsing: body)
            check(credit.bytes == oracle?.credit.bytes, bytes, "credit")
        case .method:
            let method = try MethodName(parsing: body)
            check(method.number == oracle?.method.number && method.name == oracle?.method.name, bytes, "method")
        case .hello:
            let hello = try ClientOpening(parsing: body)
            check(hello.attempt == oracle?.hello.attempt && hello.name == oracle?.hello.name, bytes, "hello")
            check(hello.progress.received == oracle?.hello.progress.received, bytes, "progress")
            check(hello.metadata.count == oracle?.hello.metadata.count, bytes, "metadata of a hello")
        case .welcome:
            let welcome = try ServerOpening(parsing: body)
            check(welcome.isResumed == oracle?.welcome.resumed, bytes, "resumed")
            check(welcome.version == oracle?.welcome.version, bytes, "version")
            check(welcome.progress.urgent == oracle?.welcome.progress.urgent, bytes, "progress")
        case .goodbye:
            let goodbye = try SessionGoodbye(parsing: body)
            check(oracle != nil, bytes, "goodbye")
            check(
                (goodbye.code?.rawValue).map(Int.init) ?? 0 == oracle?.goodbye.code.rawValue || goodbye.code == nil,
                bytes,
                "code"
            )
        case .ping:
            let number = try HeartbeatFrame.number(parsing: body)
            check(number == oracle?.ping.number, bytes, "ping")
        default:
            break
        }
    }

    /// What a message says, whichever code has read it.
    private struct Fields: Equatable {
        var serial: UInt32 = 0
        var method: UInt32 = 0
        var status: UInt32 = 0
        var timeout: UInt64 = 0
        var hasParts = false
        var payload: [UInt8] = []
        var text = ""
        var metadata: [String: String] = [:]
        var details: [[UInt8]] = []

        init(_ message: InboundMessage) {
            (serial, method, status) = (message.serial, message.method, message.status)
            (timeout, hasParts) = (message.timeoutMilliseconds, message.hasParts)
            payload = [UInt8](message.payload)
            text = message.textString
            metadata = message.metadata
            details = message.details.map { [UInt8]($0.typeURL.utf8) + [0] + $0.value }
        }

        init(_ frame: Lifeline_Session_V1_Frame) {
            switch frame.kind {
            case .push(let push), .unplacedPush(let push):
                (method, payload) = (push.method, push.payload)
                metadata = Self.dictionary(push.metadata)
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
