import Lifeline
import LifelineCore
import Testing

@Suite struct CreditGrantTests {
    private func read(_ body: [UInt8]) throws -> CreditGrant {
        try body.withUnsafeBytes { try CreditGrant(parsing: $0) }
    }

    @Test func grantsComeBack() throws {
        let golden = wireBytes { CreditGrant(target: .method(3), bytes: 300).write(to: &$0) }
        #expect(golden == [7, 0x3A, 5, 0x08, 3, 0x20, 0xAC, 2])
        for target in [CreditGrant.Target.method(1), .requestParts(serial: .max), .responseParts(serial: 7)] {
            for bytes in [0, 1, 1 << 40, UInt64.max] {
                let grant = CreditGrant(target: target, bytes: bytes)
                #expect(try read(frameBody(.credit, wireBytes { grant.write(to: &$0) })) == grant)
            }
        }
        // Zeros mean that nothing is named. Other fields are skipped.
        let bytes: [UInt8] = [0x08, 0, 0x18, 0, 0x10, 4, 0x2A, 0, 0x20, 9, 0x12, 0]
        #expect(try read(bytes) == CreditGrant(target: .requestParts(serial: 4), bytes: 9))
    }

    @Test func aGrantHasOneTarget() {
        let bodies: [[UInt8]] = [
            [], [0x20, 1], [0x08, 0, 0x20, 1], [0x08, 1, 0x10, 1], [0x10, 1, 0x18, 1], [0x08, 1, 0x18, 2],
        ]
        for body in bodies {
            #expect(throws: SessionViolation.self) { try read(body) }
        }
        #expect(throws: SessionViolation.undecodable("It is no protobuf message.")) { try read([0x08, 1, 0x20]) }
    }
}

@Suite struct MethodNameTests {
    private func read(_ name: [UInt8]) throws -> MethodName {
        let bytes = try frameBody(.method, frameBytes(.method, method: 300, payload: name))
        return try bytes.withUnsafeBytes { try MethodName(parsing: $0) }
    }

    @Test func namesHave1To256Bytes() throws {
        #expect(try read([UInt8]("a.B/Cé".utf8)) == MethodName(number: 300, name: "a.B/Cé"))
        for count in [1, 255, 256] {
            #expect(try read([UInt8](repeating: 0x61, count: count)).name.utf8.count == count)
        }
        for count in [0, 257, 5_000] {
            #expect(throws: SessionViolation.undecodable("Its method's name has \(count) bytes, not 1 to 256.")) {
                try read([UInt8](repeating: 0x61, count: count))
            }
        }
        #expect(throws: SessionViolation.undecodable("It has a text that is not UTF-8.")) { try read([0xFF]) }
    }
}
