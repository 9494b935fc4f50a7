import LifelineCore
import LifelineOlderFramings
import Testing

/// The form of the older framings' heads in Lifeline's own frames.
@Suite struct CarriedFrameTests {
    private func payload(of frame: [UInt8]) throws -> [UInt8] {
        let range = try #require(frame.withUnsafeBytes { CarriedFrame.nextPayload(in: $0, from: 0) })
        #expect(range.upperBound == frame.count)
        return Array(frame[range])
    }

    @Test func goldenBytes() throws {
        let request = FixedHeader.Request(url: 0x500, serial: 0x401)
        #expect(try CarriedFrame.bytes(head: request, content: [7]) == [9, 0, 0, 5, 0, 0, 0, 4, 1, 7])
        let response = FixedHeader.Response(url: 0x500, status: 2, serial: 0x401)
        #expect(try CarriedFrame.bytes(head: response, content: []) == [12, 0, 0, 5, 0, 0, 0, 0, 2, 0, 0, 4, 1])
        let line = HeadLine(type: "é")
        #expect(try CarriedFrame.bytes(head: line, tag: 0x102, content: [7]) == [9, 0, 0, 1, 2, 0, 2, 0xC3, 0xA9, 7])
    }

    @Test func readsWhatItWrote() throws {
        for length in [0, 1, 127, 128, 4096] {
            let head = HeadLine(type: String(repeating: "x", count: length))
            let content = [UInt8](repeating: 1, count: length)
            let payload = try payload(of: CarriedFrame.bytes(head: head, tag: .max, content: content))
            let read = try #require(payload.withUnsafeBytes { HeadLine.carried(in: $0) })
            #expect(read.head == head && read.tag == .max)
            #expect(Array(payload[read.length...]) == content)
        }
    }

    /// The bytes that the frame limit does not count.
    @Test func theFormsLength() throws {
        for type in ["", "é", String(repeating: "x", count: 4000)] {
            let payload = try payload(of: CarriedFrame.bytes(head: HeadLine(type: type), content: [1, 2, 3]))
            #expect(payload.withUnsafeBytes { HeadLine.carriedLength(in: $0) } == payload.count - 3)
            #expect(payload.count - 3 <= HeadLine.maximumCarriedLength)
            for cut in 0..<min(payload.count, 9) {
                #expect(payload[..<cut].withUnsafeBytes { HeadLine.carriedLength(in: $0) } <= cut)
            }
        }
        let response = try payload(of: CarriedFrame.bytes(head: FixedHeader.Response(url: 2, serial: 2), content: [1]))
        #expect(response.withUnsafeBytes { FixedHeader.Response.carriedLength(in: $0) } == 12)
    }

    @Test func requestsAreTaggedWithTheirSerials() throws {
        func tag(_ head: FixedHeader.Request) throws -> UInt32? {
            let payload = try payload(of: CarriedFrame.bytes(head: head, content: []))
            return payload.withUnsafeBytes { FixedHeader.Request.carried(in: $0)?.tag }
        }
        #expect(try tag(FixedHeader.Request(url: 0x500, serial: 0x401)) == 0x401)
        #expect(try tag(FixedHeader.Request(url: 7, serial: 7)) == 0)
        #expect(try tag(FixedHeader.Request(url: 1, serial: 0x401)) == 0)
        #expect(try tag(FixedHeader.Request(url: 0x500, serial: 0x500)) == 0x500)
    }

    @Test func everyCutOfAHeadIsNone() throws {
        let line = try payload(of: CarriedFrame.bytes(head: HeadLine(type: "type"), content: []))
        for count in 0..<line.count { #expect(line[..<count].withUnsafeBytes { HeadLine.carried(in: $0) } == nil) }
        let fields = [UInt8](repeating: 0, count: 12)
        for count in 0..<12 {
            #expect(fields[..<count].withUnsafeBytes { FixedHeader.Response.carried(in: $0) } == nil)
            #expect(fields[..<count].withUnsafeBytes { FixedHeader.Request.carried(in: $0) == nil } == (count < 8))
        }
        let noText: [UInt8] = [0, 0, 0, 0, 0, 1, 0xFF]
        #expect(noText.withUnsafeBytes { HeadLine.carried(in: $0) } == nil, "no UTF-8")
        for frame: [UInt8] in [[], [1], [0x80], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]] {
            #expect(frame.withUnsafeBytes { CarriedFrame.nextPayload(in: $0, from: 0) } == nil)
        }
    }
}
