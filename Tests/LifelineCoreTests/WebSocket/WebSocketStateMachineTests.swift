import LifelineTestSupport
import Testing

@testable import LifelineCore

private typealias Machine = WebSocketStateMachine

@Suite struct WebSocketStateMachineTests {
    // MARK: Messages

    @Test func messagesOfOneFrame() {
        var machine = Machine.server()
        #expect(machine.received(0x81, "Hi") == .deliver(.text, isLast: true))
        #expect(machine.received(0x82, [0xFF]) == .deliver(.binary, isLast: true))
        #expect(machine.received(0x82, []) == .deliver(.binary, isLast: true))
    }

    @Test func fragmentsWithControlFramesBetweenThem() {
        var machine = Machine.server()
        #expect(machine.received(0x01, "a") == .deliver(.text, isLast: false))
        #expect(machine.received(0x89, "ping") == .answerPing)
        #expect(machine.received(0x00, "b") == .deliver(.text, isLast: false))
        #expect(machine.received(0x8A, "") == .none)
        #expect(machine.received(0x80, "c") == .deliver(.text, isLast: true))
        #expect(machine.received(0x02, "c") == .deliver(.binary, isLast: false))
    }

    @Test(
        arguments: [
            ([0x80], .protocolError), ([0x00], .protocolError), ([0x01, 0x81], .protocolError),
            ([0x02, 0x01], .protocolError), ([0x81, 0x80], .protocolError), ([0x83], .protocolError),
            ([0x87], .protocolError), ([0x8B], .protocolError), ([0x8F], .protocolError), ([0x09], .protocolError),
            ([0x08], .protocolError), ([0xC1], .protocolError), ([0xA2], .protocolError), ([0x99], .protocolError),
        ] as [([UInt8], WebSocketCloseCode)]
    )
    func violations(firstBytes: [UInt8], code: WebSocketCloseCode) {
        var machine = Machine.server()
        for byte in firstBytes.dropLast() { _ = machine.received(byte, "x") }
        #expect(machine.received(firstBytes[firstBytes.count - 1], "x").violation == code)
        #expect(!machine.maySend, "a Close was sent")
        #expect(machine.received(0x82, "x") == .none, "what follows is dropped")
    }

    @Test func longControlFramesAreViolations() {
        for opcode: UInt8 in [0x88, 0x89, 0x8A] {
            var machine = Machine.server()
            #expect(machine.received(opcode, [UInt8](repeating: 0x31, count: 126)).violation == .protocolError)
        }
        var machine = Machine.server()
        #expect(machine.received(0x89, [UInt8](repeating: 0, count: 125)) == .answerPing)
    }

    @Test func maskingDependsOnTheRole() {
        var server = Machine.server()
        #expect(server.received(0x82, "x", isMasked: false).violation == .protocolError)
        var client = Machine(rules: .init(role: .client, receivesMessages: true), maximumMessageLength: nil)
        #expect(client.received(0x82, "x", isMasked: false) == .deliver(.binary, isLast: true))
        #expect(client.received(0x82, "x", isMasked: true).violation == .protocolError)
    }

    @Test func textsAreCheckedAsTheyCome() {
        var machine = Machine.server()
        #expect(machine.received(0x01, [0xE2]) == .deliver(.text, isLast: false))
        #expect(machine.received(0x00, [0x82]) == .deliver(.text, isLast: false))
        #expect(machine.received(0x80, [0xAC]) == .deliver(.text, isLast: true))
        #expect(machine.received(0x01, [0xED, 0xA0]).violation == .invalidPayload, "before its end")
        var cut = Machine.server()
        #expect(cut.received(0x81, [0xE2, 0x82]).violation == .invalidPayload)
        var binary = Machine.server()
        #expect(binary.received(0x82, [0xE2, 0x82]) == .deliver(.binary, isLast: true))
    }

    @Test func textsAreRefusedWhereFramesAreExpected() {
        var machine = Machine(rules: .init(role: .server, receivesMessages: false), maximumMessageLength: nil)
        #expect(machine.received(0x82, "x") == .deliver(.binary, isLast: true))
        #expect(machine.received(0x81, "x").violation == .unsupportedData)
    }

    @Test func messagesAreBoundedOverTheirFragments() {
        var machine = Machine(rules: .init(role: .server, receivesMessages: true), maximumMessageLength: 4)
        #expect(machine.received(0x82, "1234") == .deliver(.binary, isLast: true))
        #expect(machine.received(0x02, "12") == .deliver(.binary, isLast: false))
        #expect(machine.received(0x00, "34") == .deliver(.binary, isLast: false))
        #expect(machine.received(0x80, "") == .deliver(.binary, isLast: true))
        #expect(machine.received(0x02, "123") == .deliver(.binary, isLast: false))
        #expect(machine.received(0x80, "45").violation == .messageTooBig)
    }

    // MARK: Closing

    @Test func aCloseIsAnsweredWithItsCode() {
        var machine = Machine.server()
        #expect(
            machine.received(0x88, [0x03, 0xE8] + Array("bye".utf8)) == .peerClosed(answer: [0x03, 0xE8], .regular)
        )
        #expect(machine.hasPeerClosed && !machine.maySend)
        #expect(machine.endRequested() == nil, "only one")
        #expect(machine.transportEnded() == false, "that is how it ends")
        #expect(machine.received(0x82, "x") == .none)
    }

    @Test func aCloseWithoutACodeIsAnsweredWithoutOne() {
        var machine = Machine.server()
        #expect(machine.received(0x88, []) == .peerClosed(answer: [], .regular))
    }

    @Test(arguments: [[], [0x03, 0xE8], [0x03, 0xE9]] as [[UInt8]])
    func aMessageThatWasBegunIsNotLostInSilence(close: [UInt8]) {
        var machine = Machine.server()
        _ = machine.received(0x01, "a")
        #expect(machine.received(0x88, close) == .peerClosed(answer: close, .insideMessage))
        #expect(machine.hasPeerClosed && !machine.maySend)
        var whole = Machine.server()
        _ = whole.received(0x01, "a")
        _ = whole.received(0x80, "b")
        #expect(whole.received(0x88, close) == .peerClosed(answer: close, .regular))
        var ofFrames = Machine(rules: .init(role: .server, receivesMessages: false), maximumMessageLength: nil)
        _ = ofFrames.received(0x02, "a")
        #expect(ofFrames.received(0x88, close) == .peerClosed(answer: close, .regular))
    }

    @Test func theReasonOfAFailureGoesBeforeTheMessageThatItCut() {
        var machine = Machine.server()
        _ = machine.received(0x01, "a")
        let closure = WebSocketClosure(.internalError, reason: "")
        #expect(machine.received(0x88, [0x03, 0xF3]) == .peerClosed(answer: [0x03, 0xF3], .failed(closure)))
    }

    @Test func aCloseThatAnswersOursIsNotAnswered() {
        var machine = Machine.server()
        #expect(machine.endRequested() == [0x03, 0xE8])
        #expect(
            machine.received(0x82, "x") == .deliver(.binary, isLast: true),
            "the peer may still have had something to say"
        )
        #expect(machine.received(0x89, "x") == .none, "nothing follows a Close, no Pong either")
        #expect(machine.received(0x88, [0x03, 0xE8]) == .peerClosed(answer: nil, .regular))
    }

    @Test(arguments: [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999])
    func codesThatMayCome(code: UInt16) {
        var machine = Machine.server()
        let payload = [UInt8(code >> 8), UInt8(code & 0xFF)]
        let closure = WebSocketClosure(WebSocketCloseCode(rawValue: code), reason: "why")
        let isEnd = code == 1000 || code == 1001
        #expect(
            machine.received(0x88, payload + Array("why".utf8))
                == .peerClosed(answer: payload, isEnd ? .regular : .failed(closure))
        )
    }

    @Test(arguments: [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535])
    func codesThatMustNotCome(code: UInt16) {
        var machine = Machine.server()
        #expect(machine.received(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)]).violation == .protocolError)
        #expect(!machine.hasPeerClosed)
    }

    @Test func closesThatCannotBeRead() {
        var short = Machine.server()
        #expect(short.received(0x88, [0x03]).violation == .protocolError)
        var text = Machine.server()
        #expect(text.received(0x88, [0x03, 0xE8, 0xFF]).violation == .invalidPayload)
    }

    @Test func aViolationAfterOurCloseIsNotAnswered() {
        var machine = Machine.server()
        _ = machine.endRequested()
        guard case .violated(let answer, _) = machine.received(0x83, "") else {
            Issue.record("it is one")
            return
        }
        #expect(answer == nil)
    }

    @Test func anEndWithoutACloseIsACut() {
        var machine = Machine.server()
        #expect(machine.transportEnded() == true)
        #expect(machine.transportEnded() == false, "once")
        var ended = Machine.server()
        _ = ended.endRequested()
        #expect(ended.transportEnded() == true, "ours alone is not enough")
    }

    // MARK: Any frames

    /// For any input, nothing is delivered after the end, at most one Close is sent, and no message exceeds its limit.
    @Test func randomFrames() {
        var random = SeededGenerator(seed: 4)
        for _ in 0..<3000 {
            let rules = WebSocketFrameRules(role: .server, receivesMessages: Bool.random(using: &random))
            var machine = Machine(rules: rules, maximumMessageLength: 20)
            var (closes, hasEnded, length) = (0, false, 0)
            for _ in 0..<30 {
                let opcode: UInt8 = [0x0, 0x0, 0x1, 0x2, 0x2, 0x8, 0x9, 0xA, UInt8.random(in: 0...15, using: &random)]
                    .randomElement(using: &random)!
                let flags: UInt8 = [0x80, 0x80, 0x80, 0x00, 0x00, 0x00, 0xC0].randomElement(using: &random)!
                let payload = [UInt8](repeating: 0x41, count: Int.random(in: 0...8, using: &random))
                if Int.random(in: 0..<40, using: &random) == 0, machine.endRequested() != nil { closes += 1 }
                switch machine.received(flags | opcode, payload) {
                case .none: break
                case .answerPing: #expect(!hasEnded && closes == 0)
                case .deliver(_, let isLast):
                    #expect(!hasEnded)
                    length += payload.count
                    #expect(length <= 20)
                    if isLast { length = 0 }
                case .peerClosed(let answer, _), .violated(let answer, _):
                    #expect(!hasEnded)
                    hasEnded = true
                    if answer != nil { closes += 1 }
                }
            }
            #expect(closes <= 1)
            let isCut = machine.transportEnded()
            #expect(isCut == !hasEnded)
            if hasEnded { #expect(closes == 1) }
        }
    }
}

extension Machine {
    fileprivate static func server() -> Machine {
        Machine(rules: .init(role: .server, receivesMessages: true), maximumMessageLength: nil)
    }

    fileprivate mutating func received(_ firstByte: UInt8, _ payload: [UInt8], isMasked: Bool = true) -> FrameAction {
        let header = Header(
            isFinal: firstByte & 0x80 != 0,
            hasReservedBits: firstByte & 0x70 != 0,
            opcode: firstByte & 0x0F,
            isMasked: isMasked
        )
        return payload.withUnsafeBytes { received(header, payload: $0) }
    }

    fileprivate mutating func received(_ firstByte: UInt8, _ text: String, isMasked: Bool = true) -> FrameAction {
        received(firstByte, Array(text.utf8), isMasked: isMasked)
    }
}

extension Machine.FrameAction {
    /// The code with which a violation was answered.
    fileprivate var violation: WebSocketCloseCode? {
        guard case .violated(let answer?, let closure) = self else { return nil }
        let code = WebSocketCloseCode(rawValue: UInt16(answer[0]) << 8 | UInt16(answer[1]))
        return code == closure.code && String(decoding: answer[2...], as: UTF8.self) == closure.reason ? code : nil
    }
}
