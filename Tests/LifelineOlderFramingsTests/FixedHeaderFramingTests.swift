import LifelineCore
import LifelineOlderFramings
import LifelineTestSupport
import Testing

private let client = FixedHeader.ClientFraming(maximumContentLength: 4 << 20)
private let server = FixedHeader.ServerFraming(maximumContentLength: 4 << 20)

@Suite struct FixedHeaderFramingTests {
    // MARK: Golden bytes: those of FixedHeader's documentation

    @Test func aRequestAndItsResponse() throws {
        let request = FixedHeader.Request(url: 0x500, serial: 0x401)
        let requestBytes: [UInt8] = [0, 0, 5, 0, 0, 0, 4, 1, 0, 0, 0, 5] + Array("hello".utf8)
        #expect(try client.frame(request, Array("hello".utf8)) == requestBytes)
        #expect(try server.frames(in: [requestBytes]) == [HeadedFrame(head: request, content: Array("hello".utf8))])

        let response = FixedHeader.Response(url: request.url, serial: request.serial)
        let responseBytes: [UInt8] = [0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 2] + Array("ok".utf8)
        #expect(try server.frame(response, Array("ok".utf8)) == responseBytes)
        #expect(try client.frames(in: [responseBytes]) == [HeadedFrame(head: response, content: Array("ok".utf8))])
    }

    @Test func aPush() throws {
        let push = FixedHeader.Response(url: 7, serial: 7)
        #expect(try server.frame(push, []) == [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0])
        #expect(push.meaning == .push)
    }

    @Test func aPingAndItsPong() throws {
        let ping = FixedHeader.Request(url: 1, serial: FixedHeader.serial(ofPing: 2))
        #expect(try client.frame(ping, []) == [0, 0, 0, 1, 0, 0, 4, 2, 0, 0, 0, 0])
        #expect(ping.meaning == .ping)
        let pong = FixedHeader.Response(url: 1, serial: ping.serial)
        #expect(try server.frame(pong, []) == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0])
        #expect(pong.meaning == .heartbeat)
    }

    @Test func everyBitOfEveryField() throws {
        let bytes: [UInt8] = [0x81, 2, 3, 0x84, 0xF5, 6, 7, 0xF8, 0xC9, 10, 11, 0xCC, 0, 0, 0, 1, 0x2A]
        let response = FixedHeader.Response(url: 0x8102_0384, status: 0xF506_07F8, serial: 0xC90A_0BCC)
        #expect(try client.frames(in: [bytes]) == [HeadedFrame(head: response, content: [0x2A])])
        #expect(try server.frame(response, [0x2A]) == bytes)
    }

    // MARK: Numbers

    @Test func meaningsOfRequestsForTheServer() {
        #expect(FixedHeader.Request(url: 1, serial: 1).meaning == .ping, "a client that counts its pings its own way")
        #expect(FixedHeader.Request(url: 2, serial: 2).meaning == .notification)
        #expect(FixedHeader.Request(url: 0x400, serial: 0x400).meaning == .notification)
        #expect(FixedHeader.Request(url: 2, serial: 0x401).meaning == .request)
        #expect(FixedHeader.Request(url: 0x401, serial: 0x402).meaning == .request)
        for number: UInt32 in [0x401, 0x500, .max] {
            #expect(FixedHeader.Request(url: number, serial: number).meaning == .request, "a client that counts so far")
        }
    }

    @Test func meaningsOfResponsesForTheClient() {
        #expect(FixedHeader.Response(url: 1, serial: 1).meaning == .heartbeat)
        #expect(FixedHeader.Response(url: 1, serial: 0x401).meaning == .heartbeat)
        #expect(FixedHeader.Response(url: 0x400, serial: 0x400).meaning == .push)
        #expect(FixedHeader.Response(url: 0x500, serial: 0x500).meaning == .push, "a peer with higher numbers")
        #expect(FixedHeader.Response(url: 0x500, serial: 0x501).meaning == .response)
    }

    @Test func valuesThatDoNotFitAreRefused() throws {
        let refused: [FixedHeader.Request] = [
            .init(url: 0x401, serial: 0x401), .init(url: 0x500, serial: 0x400), .init(url: 0x500, serial: .max),
            .init(url: 1, serial: 1), .init(url: 0, serial: 1), .init(url: 0, serial: 0),
        ]
        for head in refused {
            let error = #expect(throws: FramingError.self) { try client.headLength(of: head, contentLength: 0) }
            #expect(error?.code == .invalidHead)
        }
        let push = FixedHeader.Response(url: 0, serial: 0)
        let error = #expect(throws: FramingError.self) { try server.headLength(of: push, contentLength: 0) }
        #expect(error?.code == .invalidHead)
        // Any value that a client chose is answered.
        let requests: [FixedHeader.Request] = [
            .init(url: 1, serial: 1), .init(url: 9, serial: 0), .init(url: 9, serial: .max),
            .init(url: 0x500, serial: 0x500), .init(url: 0x401, serial: 0x401),
        ]
        for request in requests {
            #expect(
                try server.head(FixedHeader.Response(url: request.url, serial: request.serial), contentLength: 0).count
                    == 16
            )
        }
    }

    @Test func pingNumbersGoThroughTheSerials() {
        #expect(FixedHeader.serial(ofPing: 1) == 0x401)
        #expect(FixedHeader.serial(ofPing: 0xFFFF_FFFE - 0x400) == 0xFFFF_FFFE)
        #expect(FixedHeader.serial(ofPing: 0xFFFF_FFFF - 0x400) == 0x401, "wraps before 0xFFFFFFFF")
        for number in [0, UInt64.max] { #expect(FixedHeader.serials.contains(FixedHeader.serial(ofPing: number))) }
    }

    // MARK: Limits

    @Test(arguments: [0, 1, 100, 4 << 20, Int(UInt32.max)])
    func enforcesTheLimitExactly(limit: Int) throws {
        let framing = FixedHeader.ClientFraming(maximumContentLength: limit)
        let request = FixedHeader.Request(url: 9, serial: 0x401)
        #expect(try framing.head(request, contentLength: limit).suffix(4).elementsEqual(bigEndian(limit)))
        let error = #expect(throws: FramingError.self) { try framing.headLength(of: request, contentLength: limit + 1) }
        #expect(error?.code == .payloadTooLarge)

        let head = [UInt8](repeating: 0, count: 12)
        let step = HeadStep.head(FixedHeader.Response(url: 0, serial: 0), length: 16, contentLength: limit)
        #expect(try framing.decodeHead(in: head + bigEndian(limit)) == step)
        guard limit < Int(UInt32.max) else { return }
        #expect(framing.failure(in: head + bigEndian(limit + 1)) == .frameTooLarge)
    }

    @Test func limitsAreClamped() {
        #expect(FixedHeader.ClientFraming(maximumContentLength: -1).maximumContentLength == 0)
        #expect(FixedHeader.ClientFraming(maximumContentLength: .max).maximumContentLength == Int(UInt32.max))
    }

    @Test func aHugeContentIsRefusedBeforeAnyOfItCame() {
        #expect(client.failure(in: [UInt8](repeating: 0xFF, count: 16)) == .frameTooLarge)
        #expect(server.failure(in: [UInt8](repeating: 0xFF, count: 12)) == .frameTooLarge)
        let good: [UInt8] = [0, 0, 0, 9, 0, 0, 4, 1, 0, 0, 0, 1, 7]
        #expect(server.failure(in: good + good + [UInt8](repeating: 0xFF, count: 20), after: 2) == .frameTooLarge)
    }

    @Test(arguments: [1, 11, 12, 13, 16])
    func endOfStreamInsideAFrameIsTruncation(count: Int) throws {
        let bytes: [UInt8] = [0, 0, 0, 9, 0, 0, 4, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5]
        var assembler = HeadedFrameAssembler(framing: server)
        var sink = HeadedFrames<FixedHeader.Request>()
        try assembler.receive(bytes[..<count], into: &sink)
        let error = #expect(throws: FramingError.self) { try assembler.finish() }
        #expect(error?.code == .truncatedFrame)
        let missing = count < 12 ? 12 - count : 17 - count
        #expect(error?.message.contains("ended \(count) bytes") == true)
        #expect(error?.message.contains("at least \(missing) short") == true)
    }

    // MARK: Streams

    @Test(arguments: UInt64(0)..<100)
    func randomStreamsAgainstANaiveReader(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        // Any fields: values that cannot be sent can still be received.
        let bytes = (0..<40).flatMap { _ in
            let content = random.bytes(Int.random(in: 0...Int.random(in: 0...3000, using: &random), using: &random))
            return random.bytes(8) + bigEndian(content.count) + content
        }
        let chunks = randomChunks(of: bytes, upTo: [3, 50, 5000].randomElement(using: &random)!, using: &random)
        let frames = try server.frames(in: chunks)
        #expect(frames.count == 40)
        #expect(frames == naiveRequests(in: bytes))
    }

    private func naiveRequests(in bytes: [UInt8]) -> [HeadedFrame<FixedHeader.Request>] {
        func number(_ bytes: some Collection<UInt8>) -> UInt32 { bytes.reduce(0) { $0 * 256 + UInt32($1) } }
        var rest = bytes
        var frames: [HeadedFrame<FixedHeader.Request>] = []
        while !rest.isEmpty {
            let head = FixedHeader.Request(url: number(rest[0..<4]), serial: number(rest[4..<8]))
            let end = 12 + Int(number(rest[8..<12]))
            frames.append(HeadedFrame(head: head, content: Array(rest[12..<end])))
            rest.removeFirst(end)
        }
        return frames
    }
}

private func bigEndian(_ value: Int) -> [UInt8] {
    [UInt8(value >> 24 & 255), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
}
