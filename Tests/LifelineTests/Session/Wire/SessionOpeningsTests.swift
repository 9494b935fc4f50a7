import Lifeline
import LifelineCore
import Testing

@Suite struct SessionOpeningsTests {
    private func hello(_ body: [UInt8]) throws -> ClientOpening {
        try body.withUnsafeBytes { try ClientOpening(parsing: $0) }
    }

    private func welcome(_ body: [UInt8]) throws -> ServerOpening {
        try body.withUnsafeBytes { try ServerOpening(parsing: $0) }
    }

    /// A terms message as field 7: 1 frame, 4,096 bytes, 64 KiB of credit.
    private let leastTerms: [UInt8] = [0x3A, 9, 0x08, 1, 0x10, 0x80, 0x20, 0x18, 0x80, 0x80, 0x04]

    @Test func aHelloComesBack() throws {
        let least = SessionTerms(
            window: SessionWindow(frameCount: 1, byteCount: 4_096),
            credit: 65_536,
            maximumRequestCount: 1,
            maximumFrameLength: 4 << 20
        )
        let minimal = ClientOpening(attempt: 1, terms: least)
        for opening in [minimal, sampleClientOpening] {
            #expect(try hello(frameBody(.hello, wireBytes { opening.write(to: &$0) })) == opening)
        }
        let bytes = try frameBody(.hello, wireBytes { minimal.write(to: &$0) })
        let requestsAndFrame: [UInt8] = [0x20, 1, 0x28, 0x80, 0x80, 0x80, 0x02]
        #expect(bytes == [0x08, 1, 0x10, 1, 0x28, 1, 0x3A, 16] + leastTerms.dropFirst(2) + requestsAndFrame)
        // Missing fields have their default values.
        #expect(try hello([0x08, 1, 0x10, 1, 0x28, 1] + leastTerms) == minimal)
    }

    @Test func aWelcomeComesBack() throws {
        var minimal = sampleServerOpening
        (minimal.isResumed, minimal.kept, minimal.progress, minimal.metadata) = (false, .zero, OpeningProgress(), [:])
        minimal.store = nil
        for opening in [minimal, sampleServerOpening] {
            #expect(try welcome(frameBody(.welcome, wireBytes { opening.write(to: &$0) })) == opening)
        }
        minimal.kept = .nanoseconds(1)
        #expect(try welcome(frameBody(.welcome, wireBytes { minimal.write(to: &$0) })).kept == .milliseconds(1))
        minimal.kept = .seconds(-1)
        #expect(try welcome(frameBody(.welcome, wireBytes { minimal.write(to: &$0) })).kept == .zero)
    }

    @Test(arguments: [0, 15, 17]) func aStoreWithoutAnIDIsNone(count: Int) throws {
        let id = [UInt8](repeating: 1, count: count)
        let store = wireBytes { FieldWriter.appendMessage(10, to: &$0) { FieldWriter.appendField(1, id, to: &$0) } }
        #expect(try hello(leastTerms + store).store == nil)
        #expect(throws: SessionViolation.self) { try hello(leastTerms + [0x52, 1, 0x0A]) }
    }

    @Test func aFloorHas63Bits() throws {
        for (floor, isRight) in [(UInt64(Int64.max), true), (UInt64(Int64.max) + 1, false), (.max, false)] {
            var opening = sampleClientOpening
            opening.store = StoreOpening(id: SessionStoreID(SessionID(1, 1)), floor: floor)
            let body = try frameBody(.hello, wireBytes { opening.write(to: &$0) })
            let read = try? hello(body)
            #expect(read == (isRight ? opening : nil))
        }
    }

    @Test func credentialsHave16Bytes() throws {
        for (id, token) in [(0, 0), (15, 16), (16, 15), (17, 16), (16, 0), (0, 16)] {
            let (id, token) = ([UInt8](repeating: 1, count: id), [UInt8](repeating: 2, count: token))
            let named = wireBytes {
                FieldWriter.appendField(3, id, to: &$0)
                FieldWriter.appendField(4, token, to: &$0)
            }
            #expect(try hello(named + leastTerms).credentials == nil)
            let given = wireBytes {
                FieldWriter.appendField(2, id, to: &$0)
                FieldWriter.appendField(3, token, to: &$0)
            }
            let wrong = id.count == 16 ? token.count : id.count
            #expect(throws: SessionViolation.malformedCredentials(byteCount: wrong)) { try welcome(given + leastTerms) }
        }
    }

    @Test func termsHaveLeastValues() throws {
        func terms(_ frames: UInt64, _ bytes: UInt64, _ credit: UInt64, _ rest: [UInt64] = [0, 0]) -> [UInt8] {
            wireBytes {
                FieldWriter.appendMessage(7, to: &$0) { terms in
                    for (index, value) in ([frames, bytes, credit] + rest).enumerated() {
                        FieldWriter.appendField(UInt32(index + 1), value, to: &terms)
                    }
                }
            }
        }
        for body in [[], terms(0, 4_096, 65_536), terms(1, 4_095, 65_536), terms(1 << 32, 4_096, 65_536)] {
            #expect(throws: SessionViolation.emptyWindow) { try hello(body) }
        }
        #expect(throws: SessionViolation.smallCredit) {
            try hello(terms(1, 4_096, 65_535))
        }
        let huge = try hello(terms(.max, .max, .max, [.max, .max])).terms
        let most = Int(UInt32.max)
        #expect(huge.window == SessionWindow(frameCount: most, byteCount: .max) && huge.credit == .max)
        #expect(huge.maximumRequestCount == most && huge.maximumFrameLength == most)
        // Several messages are merged, field by field.
        let merged = try hello(terms(1, 0, 65_536, [0, 7_000]) + terms(0, 5_000, 0) + terms(2, 0, 0)).terms
        #expect(merged.window == SessionWindow(frameCount: 2, byteCount: 5_000) && merged.maximumFrameLength == 7_000)
        let progress: [UInt8] = [0x32, 2, 0x08, 5, 0x32, 4, 0x10, 6, 0x18, 7]
        #expect(
            try hello(progress + leastTerms).progress == OpeningProgress(processed: 5, received: 6, urgent: 7)
        )
    }

    @Test func aHelloHasLimits() throws {
        func entries(_ count: Int) -> [UInt8] { (0..<count).flatMap { _ in [0x4A, 0] as [UInt8] } }
        #expect(try hello(leastTerms + entries(128)).metadata == ["": ""])
        #expect(throws: SessionViolation.tooManyEntries) { try hello(leastTerms + entries(129)) }
        var opening = sampleClientOpening
        opening.metadata = [:]
        opening.name = String(repeating: "n", count: 16 << 10)
        #expect(try hello(frameBody(.hello, wireBytes { opening.write(to: &$0) })) == opening)
        opening.name += "n"
        #expect(throws: SessionViolation.tooManyEntries) {
            try hello(frameBody(.hello, wireBytes { opening.write(to: &$0) }))
        }
        opening.name = String(repeating: "n", count: 16_380)
        opening.metadata = ["": ""]
        #expect(throws: SessionViolation.tooManyEntries) {
            try hello(frameBody(.hello, wireBytes { opening.write(to: &$0) }))
        }
    }

    @Test func aWelcomeHasLimits() throws {
        var opening = sampleServerOpening
        opening.metadata = Dictionary(uniqueKeysWithValues: (0..<128).map { ("\($0)", "") })
        #expect(try welcome(frameBody(.welcome, wireBytes { opening.write(to: &$0) })) == opening)
        opening.metadata["128"] = ""
        #expect(throws: SessionViolation.tooManyEntries) {
            try welcome(frameBody(.welcome, wireBytes { opening.write(to: &$0) }))
        }
        opening.metadata = ["": String(repeating: "v", count: 64 << 10)]
        #expect(throws: SessionViolation.tooManyEntries) {
            try welcome(frameBody(.welcome, wireBytes { opening.write(to: &$0) }))
        }
    }

    @Test func unknownFieldsAreSkippedAndTextsAreUTF8() throws {
        let unknown: [UInt8] = [0xF8, 0x01, 5, 0xFB, 0x01, 0x08, 1, 0xFC, 0x01, 0x0A, 1, 0xFF, 0x38, 1]
        #expect(try hello(unknown + leastTerms + unknown).minimumVersion == 0)
        for body in [[0x42, 1, 0xFF], [0x4A, 3, 0x0A, 1, 0xFF]] as [[UInt8]] {
            #expect(throws: SessionViolation.undecodable("It has a text that is not UTF-8.")) {
                try hello(body + leastTerms)
            }
        }
        for body in [[0x3A, 1, 0x08], [0x32, 1, 0x08], [0x4A, 1, 0x0A]] as [[UInt8]] {
            #expect(throws: SessionViolation.undecodable("It is no protobuf message.")) { try hello(body + leastTerms) }
        }
    }
}

@Suite struct SessionGoodbyeWireTests {
    private func read(_ body: [UInt8]) throws -> SessionGoodbye {
        try body.withUnsafeBytes { try SessionGoodbye(parsing: $0) }
    }

    @Test func goodbyesComeBack() throws {
        let goodbye = SessionGoodbye(.draining, "Later", pause: .milliseconds(1_500))
        let bytes = wireBytes { goodbye.write(to: &$0) }
        #expect(bytes == [14, 0x1A, 12, 0x08, 2, 0x12, 5] + [UInt8]("Later".utf8) + [0x18, 0xDC, 0x0B])
        for code in SessionGoodbye.Code.allCases + [nil] {
            let goodbye = SessionGoodbye(code, String(repeating: "ä", count: 1_000), pause: .seconds(3))
            #expect(try read(frameBody(.goodbye, wireBytes { goodbye.write(to: &$0) })) == goodbye)
        }
    }

    @Test func strangeValuesAreTaken() throws {
        #expect(try read([0x08, 99]) == SessionGoodbye(nil))
        #expect(try read([0x08] + Varint.encoded(.max) + [0x18] + Varint.encoded(.max)).pause == .seconds(365 * 86_400))
        let text = wireBytes { FieldWriter.appendField(2, String(repeating: "x", count: 5_000), to: &$0) }
        #expect(try read(text).message.unicodeScalars.count == 1_000)
        #expect(throws: SessionViolation.undecodable("It has a text that is not UTF-8.")) { try read([0x12, 1, 0xFF]) }
    }

    @Test func heartbeatsComeBack() throws {
        for kind in [FrameKind.ping, .pong] {
            for number in [0, 1, UInt64.max] {
                let bytes = try frameBody(kind, wireBytes { HeartbeatFrame.write(kind: kind, number: number, to: &$0) })
                #expect(try bytes.withUnsafeBytes { try HeartbeatFrame.number(parsing: $0) } == number)
            }
        }
        #expect(wireBytes { HeartbeatFrame.write(kind: .pong, number: 5, to: &$0) } == [4, 0x2A, 2, 0x08, 5])
    }
}
