import LifelineCore
import LifelineProtos
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

@testable import Lifeline

/// Frames of the session protocol: as they are written, read by the generated code; and what is read of hostile ones.
@Suite struct SessionFrameTests {
    private typealias Frame = Lifeline_Session_V1_Frame
    private let now = MonotonicTime(nanoseconds: 5_000_000_000)

    /// The one frame that these bytes are.
    private func frame(
        _ frame: SessionFrame<SessionPayload>,
        _ details: SessionOpeningDetails = SessionOpeningDetails()
    ) throws -> Frame {
        var bytes: [UInt8] = [0xAA]
        frame.append(to: &bytes, details, now: now)
        let frames = try sessionFrames(in: Array(bytes.dropFirst()))
        #expect(bytes.first == 0xAA)
        #expect(frames.count == 1)
        return try #require(frames.first)
    }

    @Test func everyFieldOfARequest() throws {
        let payload = OutgoingPayload.request(method: "a.B/C", metadata: ["k": "v", "a": ""], payload: [1, 2, 3])
        let deadline = now + .microseconds(1_500)
        let message = SessionMessage.request(serial: 7, deadline: deadline, SessionPayload.outgoing(payload))
        let place = SessionPlace(.ordinary, 300)
        let written = try frame(.message(place, SessionAcknowledgement(ordinary: 5, urgent: 6), message))
        #expect(
            written
                == .with {
                    $0.sequence = 300
                    $0.acknowledgement = 5
                    $0.urgentAcknowledgement = 6
                    $0.request.serial = 7
                    $0.request.method = "a.B/C"
                    $0.request.timeoutMilliseconds = 2
                    $0.request.metadata = ["k": "v", "a": ""]
                    $0.request.payload = [1, 2, 3]
                }
        )
        #expect(payload.byteCount == 3 + 5 + 2 + 1 + 2 * 64)
        #expect(SessionPayload.request(written.request).byteCount == payload.byteCount)
    }

    @Test func everyFieldOfAResponse() throws {
        let detail = SessionStatus.Detail(typeURL: "t/x", value: [9, 9])
        let status = SessionStatus(.notFound, "gone", details: [detail, detail])
        let payload = OutgoingPayload.response(status, metadata: ["k": "v"], payload: [4])
        let message = SessionMessage.response(serial: .max, endsPushes: false, SessionPayload.outgoing(payload))
        let written = try frame(.message(SessionPlace(.urgent, .max), SessionAcknowledgement(), message))
        let any = Google_Protobuf_Any.with { ($0.typeURL, $0.value) = ("t/x", [9, 9]) }
        #expect(
            written
                == .with {
                    $0.urgentSequence = .max
                    $0.response.serial = .max
                    $0.response.status = 5
                    $0.response.message = "gone"
                    $0.response.details = [any, any]
                    $0.response.metadata = ["k": "v"]
                    $0.response.payload = [4]
                }
        )
        #expect(payload.byteCount == 1 + 4 + 2 * (3 + 2 + 64) + 2 + 64)
        #expect(SessionPayload.response(written.response).byteCount == payload.byteCount)
        #expect(SessionStatus(written.response) == status)
    }

    @Test func everyFieldOfAPush() throws {
        let payload = OutgoingPayload.push(method: "a.B/D", metadata: ["ü": "1"], payload: [])
        let message = SessionMessage.push(serial: 3, SessionPayload.outgoing(payload))
        let written = try frame(.message(nil, SessionAcknowledgement(ordinary: .max, urgent: 0), message))
        #expect(
            written
                == .with {
                    $0.acknowledgement = .max
                    $0.push.method = "a.B/D"
                    $0.push.serial = 3
                    $0.push.metadata = ["ü": "1"]
                }
        )
        #expect(payload.byteCount == 5 + 2 + 1 + 64)
        #expect(SessionPayload.push(written.push).byteCount == payload.byteCount)
    }

    @Test func cancelAndBlank() throws {
        let cancel = SessionMessage<SessionPayload>.cancel(serial: 8)
        #expect(
            try frame(.message(SessionPlace(.urgent, 1), SessionAcknowledgement(), cancel))
                == .with { ($0.urgentSequence, $0.cancel.serial) = (1, 8) }
        )
        #expect(try frame(.message(nil, SessionAcknowledgement(ordinary: 1, urgent: 2), .blank)).kind == nil)
        #expect(try frame(.message(nil, SessionAcknowledgement(), .blank)) == Frame())
    }

    @Test func everyFieldOfAnOpening() throws {
        let credentials = SessionCredentials(id: SessionID(1, 2), token: SessionToken(3, 4))
        let progress = SessionProgress(processed: SessionAcknowledgement(ordinary: 5, urgent: 6), received: 7)
        let window = SessionWindow(frameCount: 8, byteCount: 4_097)
        let hello = SessionHello(
            minimumVersion: 1,
            maximumVersion: 3,
            session: credentials,
            attempt: 12,
            progress: progress,
            window: window,
            maximumRequestCount: 10,
            maximumFrameLength: 13
        )
        let details = SessionOpeningDetails(name: "n", metadata: ["k": "v"], keptDuration: .microseconds(1))
        let written = try frame(.hello(hello), details)
        #expect(written.hello.name == "n")
        #expect(written.hello.metadata.asMetadata == ["k": "v"])
        #expect(written.hello.sessionID == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2])
        guard case .hello(let read) = try SessionFrame(written, byteCount: 0, now: now) else {
            return #expect(Bool(false))
        }
        #expect(read == hello)

        let welcome = SessionWelcome(
            version: 1,
            session: credentials,
            isResumed: true,
            progress: progress,
            window: window,
            maximumRequestCount: 11,
            maximumFrameLength: 14
        )
        let answer = try frame(.welcome(welcome), details)
        #expect(answer.welcome.keptMilliseconds == 1)
        #expect(answer.welcome.metadata.asMetadata == ["k": "v"])
        guard case .welcome(let read) = try SessionFrame(answer, byteCount: 0, now: now) else {
            return #expect(Bool(false))
        }
        #expect(read == welcome)
    }

    /// They are kept as long as the session, and logged.
    @Test func aPeersWordsAreCut() throws {
        let frame = Lifeline_Session_V1_Frame.with {
            ($0.goodbye.code, $0.goodbye.message) = (.closed, String(repeating: "é", count: 5_000))
        }
        guard case .goodbye(let read) = try SessionFrame(frame, byteCount: 0, now: now) else {
            return #expect(Bool(false))
        }
        #expect(read.message == String(repeating: "é", count: 1_000))
    }

    @Test(arguments: SessionGoodbye.Code.allCases) func goodbyes(_ code: SessionGoodbye.Code) throws {
        let goodbye = SessionGoodbye(code, "so long", pause: .milliseconds(250))
        let written = try frame(.goodbye(goodbye))
        #expect(written.goodbye.code.rawValue == Int(code.rawValue))
        guard case .goodbye(let read) = try SessionFrame(written, byteCount: 0, now: now) else {
            return #expect(Bool(false))
        }
        #expect(read == goodbye)
    }

    @Test func codesOfLaterVersionsAndLongPauses() throws {
        let frame = Frame.with {
            $0.goodbye.code = .UNRECOGNIZED(99)
            $0.goodbye.pauseMilliseconds = .max
        }
        guard case .goodbye(let read) = try SessionFrame(frame, byteCount: 0, now: now) else {
            return #expect(Bool(false))
        }
        #expect(read.code == nil)
        #expect(read.pause == .longest)
    }

    @Test func deadlinesOfRequests() throws {
        func deadline(_ milliseconds: UInt64) throws -> MonotonicTime? {
            let frame = Frame.with { ($0.request.serial, $0.request.timeoutMilliseconds) = (1, milliseconds) }
            guard case .message(_, _, let message) = try SessionFrame(frame, byteCount: 0, now: now),
                case .request(_, let deadline) = message.kind
            else { return nil }
            return deadline
        }
        #expect(try deadline(0) == nil)
        #expect(try deadline(3) == now + .milliseconds(3))
        #expect(try deadline(.max) == now + .longest)
    }

    @Test func hostileFrames() throws {
        func failure(_ populate: (inout Frame) -> Void) -> SessionViolation? {
            do throws(SessionViolation) {
                var frame = Frame()
                populate(&frame)
                _ = try SessionFrame(frame, byteCount: 0, now: now)
                return nil
            } catch {
                return error
            }
        }
        let sixteen = [UInt8](repeating: 1, count: 16)
        func window(_ window: inout Lifeline_Session_V1_Window) { (window.frames, window.bytes) = (1, 4096) }
        for count in [0, 1, 15, 17] {
            let bytes = [UInt8](repeating: 1, count: count)
            let expected = SessionViolation.malformedCredentials(byteCount: count)
            #expect(failure { ($0.welcome.sessionID, $0.welcome.token) = (bytes, sixteen) } == expected)
            #expect(failure { ($0.welcome.sessionID, $0.welcome.token) = (sixteen, bytes) } == expected)
            for (id, token) in [(bytes, sixteen), (sixteen, bytes), (bytes, bytes)] {
                let frame = Frame.with {
                    ($0.hello.sessionID, $0.hello.token) = (id, token); window(&$0.hello.window)
                }
                guard case .hello(let hello) = try SessionFrame(frame, byteCount: 0, now: now) else {
                    return #expect(Bool(false))
                }
                #expect(hello.session == nil)
            }
        }
        #expect(failure { $0.hello.name = "no window" } == .emptyWindow)
        #expect(failure { $0.hello.window.frames = 1 } == .emptyWindow)
        #expect(failure { $0.hello.window.bytes = 4096 } == .emptyWindow)
        #expect(failure { ($0.hello.window.frames, $0.hello.window.bytes) = (9, 4095) } == .emptyWindow)
        #expect(failure { ($0.welcome.sessionID, $0.welcome.token) = (sixteen, sixteen) } == .emptyWindow)
        let wrongPlace = SessionViolation.wrongPlace
        #expect(failure { ($0.sequence, $0.urgentSequence) = (1, 1) } == wrongPlace)
        #expect(
            failure {
                window(&$0.hello.window); $0.sequence = 1
            } == wrongPlace
        )
        #expect(failure { ($0.goodbye.message, $0.urgentSequence) = ("", 1) } == wrongPlace)
        #expect(failure { ($0.ping.number, $0.sequence) = (1, 1) } == wrongPlace)
        #expect(failure { ($0.pong.number, $0.sequence) = (1, 1) } == wrongPlace)
        #expect(failure { ($0.welcome.version, $0.sequence) = (1, 1) } == wrongPlace)
        // What a later version may say is nothing yet.
        #expect(failure { $0.sequence = 1 } == nil)
        #expect(failure { window(&$0.hello.window) } == nil)
        #expect(
            failure {
                $0.hello.window.frames = .max; $0.hello.window.bytes = .max
            } == nil
        )
    }

    @Test func framesThatAreLongerThanTheyCountFor() throws {
        func violation(_ frame: Frame, byteCount: Int) -> SessionViolation? {
            do throws(SessionViolation) {
                _ = try SessionFrame(frame, byteCount: byteCount, now: now)
                return nil
            } catch {
                return error
            }
        }
        let frames = [
            Frame.with { ($0.request.serial, $0.request.payload) = (1, [1, 2]) },
            Frame.with { ($0.response.serial, $0.response.payload) = (1, [1, 2]) },
            Frame.with { $0.push.payload = [1, 2] },
        ]
        for frame in try frames.map({ try Frame(serializedBytes: $0.serializedBytes()) }) {
            #expect(violation(frame, byteCount: 258) == nil)
            #expect(violation(frame, byteCount: 259) == .padded(byteCount: 257))
        }
        // Nothing of these is kept.
        #expect(violation(Frame(), byteCount: 1 << 20) == nil)
        #expect(violation(Frame.with { $0.cancel.serial = 1 }, byteCount: 1 << 20) == nil)
    }

    /// What is written is read as it was, whatever it is.
    @Test func roundTrips() throws {
        var random = SeededGenerator(seed: 6)
        for _ in 0..<2_000 {
            let message = SessionMessage<SessionPayload>.random(using: &random)
            let lane = SessionLane.allCases.randomElement(using: &random) ?? .ordinary
            let place = Bool.random(using: &random) ? SessionPlace(lane, .random(in: 1...(.max), using: &random)) : nil
            let acknowledgement = SessionAcknowledgement(
                ordinary: random.next() >> UInt64.random(in: 0...63, using: &random),
                urgent: random.next() >> UInt64.random(in: 0...63, using: &random)
            )
            let written = try frame(.message(place, acknowledgement, message))
            let length = try written.serializedBytes().count
            // What is written is never taken for padding, and is no longer than was said.
            if let content = message.content { #expect(length <= content.maximumFrameLength) }
            guard
                case .message(place, acknowledgement, let read) = try SessionFrame(written, byteCount: length, now: now)
            else {
                #expect(Bool(false), "\(message)")
                continue
            }
            #expect(read.byteCount == message.byteCount)
            #expect(read.summary == message.summary)
        }
    }
}

extension SessionMessage<SessionPayload> {
    fileprivate static func random(using random: inout SeededGenerator) -> SessionMessage {
        let payload = random.bytes(Int.random(in: 0...300, using: &random))
        let metadata = SessionMetadata(
            (0..<Int.random(in: 0...3, using: &random)).map { ("name\($0)", String(repeating: "v", count: $0 * 90)) },
            uniquingKeysWith: { $1 }
        )
        let serial = UInt32.random(in: 1...(.max), using: &random)
        let method = "m\(serial)"
        switch Int.random(in: 0..<5, using: &random) {
        case 0:
            let request = OutgoingPayload.request(method: method, metadata: metadata, payload: payload)
            return .request(serial: serial, deadline: nil, .outgoing(request))
        case 1:
            let status = SessionStatus(
                .init(rawValue: serial % 20),
                Bool.random(using: &random) ? "message" : "",
                details: Bool.random(using: &random) ? [.init(typeURL: "t", value: payload)] : []
            )
            let response = OutgoingPayload.response(status, metadata: metadata, payload: payload)
            return .response(serial: serial, endsPushes: false, .outgoing(response))
        case 2:
            let push = OutgoingPayload.push(method: method, metadata: metadata, payload: payload)
            return .push(serial: serial, .outgoing(push))
        case 3: return .cancel(serial: serial)
        default: return .blank
        }
    }

    /// What both sides have of it.
    fileprivate var summary: String {
        let payload = content.map { " \($0.payload)" } ?? ""
        return switch kind {
        case .request(let serial, _): "request \(serial)\(payload)"
        case .response(let serial, _): "response \(serial)\(payload)"
        case .push(let serial): "push \(serial)\(payload)"
        case .cancel(let serial): "cancel \(serial)\(payload)"
        case .blank: "blank\(payload)"
        }
    }
}

extension SessionPayload {
    fileprivate var payload: [UInt8] {
        switch self {
        case .outgoing(let payload): payload.payload
        case .request(let request): request.payload
        case .response(let response): response.payload
        case .push(let push): push.payload
        }
    }
}
