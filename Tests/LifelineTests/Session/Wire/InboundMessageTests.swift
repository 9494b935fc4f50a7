import Lifeline
import Testing

@Suite struct InboundMessageTests {
    private let unknown: [UInt8] = [0xF8, 0x01, 5, 0xFA, 0x01, 1, 0xFF, 0xFB, 0x01, 0x08, 1, 0xFC, 0x01]

    @Test func aPushIsRead() throws {
        let body: [UInt8] = [0x08, 7, 0x12, 6, 0x0A, 1, 0x61, 0x12, 1, 0x62, 0x1A, 2, 8, 9]
        for kind in [FrameKind.push, .unplacedPush] {
            try withMessage(kind, unknown + body + unknown) { message in
                #expect(message.method == 7 && Array(message.payload) == [8, 9] && message.metadata == ["a": "b"])
                #expect(message.metadataCount == 1 && message.metadataByteCount == 8 && !message.exceedsEntryLimits)
                #expect(message.serial == 0 && message.details.isEmpty && message.kind == kind)
            }
        }
    }

    @Test func aRequestIsReadInAnyOrder() throws {
        let body: [UInt8] = [0x32, 1, 9, 0x20, 2, 0x18, 4, 0x10, 3, 0x2A, 0, 0x08, 0xE8, 0x87, 0x80, 0x80, 0x00]
        try withMessage(.request, unknown + body) { message in
            #expect(message.serial == 3 && message.method == 4 && message.hasParts && Array(message.payload) == [9])
            #expect(message.timeoutMilliseconds == 1_000 && message.metadata == ["": ""])
        }
    }

    @Test func aResponseIsRead() throws {
        let detail: [UInt8] = [0x22, 6, 0x0A, 1, 0x74, 0x12, 1, 0xFF]
        let body: [UInt8] = [0x08, 1, 0x10, 14, 0x1A, 2, 0x68, 0x69] + detail + [0x2A, 3, 0x0A, 1, 0x61, 0x32, 1, 5]
        for kind in [FrameKind.response, .urgentResponse] {
            try withMessage(kind, body + unknown) { message in
                #expect(message.serial == 1 && message.status == 14 && message.textString == "hi")
                #expect(message.details.map(\.typeURL) == ["t"] && message.details.map(\.value) == [[0xFF]])
                #expect(message.metadata == ["a": ""] && Array(message.payload) == [5] && message.detailCount == 1)
            }
        }
    }

    @Test func partsEndsAndCancelsAreRead() throws {
        for kind in [FrameKind.requestPart, .responsePart, .unplacedRequestPart, .unplacedResponsePart] {
            try withMessage(kind, [0x08, 5, 0x12, 1, 6]) { #expect($0.serial == 5 && Array($0.payload) == [6]) }
        }
        for kind in [FrameKind.requestEnd, .cancel] {
            try withMessage(kind, [0x08, 5, 0x12, 1, 6]) { #expect($0.serial == 5 && $0.payload.isEmpty) }
        }
        for kind in [FrameKind.blank, FrameKind(rawValue: 20)] {
            try withMessage(kind, [0x08, 5]) { #expect($0.serial == 0) }
            #expect(throws: SessionViolation.undecodable("It is no protobuf message.")) {
                try withMessage(kind, [0x08]) { _ in }
            }
        }
        try withMessage(.push, []) { #expect($0.method == 0 && $0.payload.isEmpty && $0.metadata.isEmpty) }
    }

    @Test func theLastValueCounts() throws {
        try withMessage(.request, [0x10, 1, 0x32, 1, 1, 0x20, 1, 0x10, 2, 0x32, 0, 0x20, 0]) {
            #expect($0.serial == 2 && $0.payload.isEmpty && !$0.hasParts)
        }
        let entry: (UInt8) -> [UInt8] = { [0x12, 6, 0x0A, 1, 0x61, 0x12, 1, $0] }
        try withMessage(.push, entry(0x62) + entry(0x63)) {
            #expect($0.metadata == ["a": "c"] && $0.metadataCount == 2)
        }
    }

    @Test func numbersAreCutAndWrongWireTypesAreUnknown() throws {
        // 2⁶³ + 5, and a bool of 2⁶³.
        let high: [UInt8] = [UInt8](repeating: 0x80, count: 8) + [0x80, 0x01]
        try withMessage(.request, [0x10, 0x85] + high.dropFirst() + [0x20] + high) {
            #expect($0.serial == 5 && $0.hasParts)
        }
        try withMessage(.request, [0x12, 1, 1, 0x30, 9, 0x28, 9, 0x0D, 1, 2, 3, 4]) {
            #expect($0.serial == 0 && $0.payload.isEmpty && $0.metadataCount == 0 && $0.timeoutMilliseconds == 0)
        }
        try withMessage(.response, [0x20, 1, 0x28, 1, 0x18, 1, 0x2A, 2, 0x0A, 0]) {
            #expect($0.details.isEmpty && $0.metadata == ["": ""] && $0.text.isEmpty)
        }
    }

    @Test func textsMustBeUTF8() {
        let notUTF8 = SessionViolation.undecodable("It has a text that is not UTF-8.")
        let bodies: [(FrameKind, [UInt8])] = [
            (.push, [0x12, 3, 0x0A, 1, 0xFF]), (.push, [0x12, 3, 0x12, 1, 0xFF]),
            (.request, [0x2A, 3, 0x0A, 1, 0xFF]), (.response, [0x1A, 1, 0xFF]),
            (.response, [0x22, 3, 0x0A, 1, 0xFF]), (.urgentResponse, [0x2A, 3, 0x12, 1, 0xFF]),
            // A malformed text, followed by another one.
            (.response, [0x1A, 1, 0xFF, 0x1A, 1, 0x61]),
        ]
        for (kind, body) in bodies { #expect(throws: notUTF8) { try withMessage(kind, body) { _ in } } }
    }

    @Test func brokenEntriesThrow() {
        for body in [[0x12, 1, 0x0A], [0x12, 2, 0x0A, 1], [0x12, 1, 0], [0x12, 3, 0x0A]] as [[UInt8]] {
            #expect(throws: SessionViolation.undecodable("It is no protobuf message.")) {
                try withMessage(.push, body) { _ in }
            }
        }
    }

    @Test func entriesHaveLimits() throws {
        func repeated(_ bytes: [UInt8], _ count: Int) -> [UInt8] { (0..<count).flatMap { _ in bytes } }
        for (kind, tag) in [(FrameKind.push, 0x12), (.request, 0x2A), (.response, 0x2A), (.response, 0x22)] {
            try withMessage(kind, repeated([UInt8(tag), 0], 128)) { #expect(!$0.exceedsEntryLimits) }
            try withMessage(kind, repeated([UInt8(tag), 0], 129)) { #expect($0.exceedsEntryLimits) }
        }
        // The entry has 12 bytes in addition to the value: three bytes of length, twice, and others.
        for (count, exceeds) in [(65_536 - 12, false), (65_536 - 11, true)] {
            var fields: [UInt8] = []
            FieldWriter.metadataFields(["abc": String(repeating: "v", count: count - 1)], field: 2, into: &fields)
            #expect((fields.count > 65_536) == exceeds)
            try withMessage(.push, fields) {
                #expect($0.metadataByteCount == fields.count && $0.exceedsEntryLimits == exceeds)
            }
        }
    }
}
