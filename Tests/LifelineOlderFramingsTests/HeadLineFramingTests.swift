import Foundation
import LifelineCore
import LifelineOlderFramings
import LifelineTestSupport
import Testing

private let framing = HeadLineFraming(maximumContentLength: 4 << 20)

@Suite struct HeadLineFramingTests {
    // MARK: Golden bytes

    @Test func goldenBytes() throws {
        let bytes = Array("{\"type\":\"greeting\",\"size\":5}\r\nhello".utf8)
        #expect(try framing.frame(HeadLine(type: "greeting"), Array("hello".utf8)) == bytes)
        #expect(
            try framing.frames(in: [bytes]) == [
                HeadedFrame(head: HeadLine(type: "greeting"), content: Array("hello".utf8))
            ]
        )
    }

    @Test func escapesWhatJSONMustEscapeAndNothingElse() throws {
        let type = "\u{0}\u{1}\u{8}\t\n\r\u{1F} \"\\/\u{7F}é日🎉"
        let head = try framing.head(HeadLine(type: type), contentLength: 0)
        let text = #""\u0000\u0001\u0008\u0009\u000a\u000d\u001f \"\\/"# + "\u{7F}é日🎉\""
        #expect(head == Array("{\"type\":\(text),\"size\":0}\r\n".utf8))
        #expect(try framing.frames(in: [head]).map(\.head.type) == [type])
    }

    // MARK: Heads

    @Test(arguments: [
        (#"{"type":"a","size":3}"#, "a", 3), (#"{"size":3,"type":"a"}"#, "a", 3), (#"{"type":"a","size":"3"}"#, "a", 3),
        (#"{"type":"","size":0}"#, "", 0), (#"{"type":"a","size":"0"}"#, "a", 0),
        ("\t { \t\"type\" :\t\"a\" , \"size\"\t: 3 }\t ", "a", 3),
        (#"{"\u0074\u0079pe":"a","\u0073ize":3}"#, "a", 3), (#"{"type":"a","size":"\u0033"}"#, "a", 3),
        (#"{"type":"\"\\\/\b\f\n\r\t","size":1}"#, "\"\\/\u{8}\u{C}\n\r\t", 1),
        (#"{"type":"\u00e9\u00E9\u65e5\ud83c\udf89\uD83C\uDF89","size":1}"#, "éé日🎉🎉", 1),
        (#"{"type":"\u0000\uffff\ue000\ud7ff","size":1}"#, "\u{0}\u{FFFF}\u{E000}\u{D7FF}", 1),
        (#"{"type":"é日🎉","size":1}"#, "é日🎉", 1),
        (#"{"v":1,"type":"a","w":[],"size":3,"x":{}}"#, "a", 3),
        (#"{"a":[1,-0,0.5,-1.5e+10,2E-3,1e5,[{"a":[null,true,false,"s",{}]}]],"type":"a","size":3}"#, "a", 3),
        (#"{"a":{"type":1,"type":2,"size":[]},"type":"a","size":3}"#, "a", 3),
        // Names that are equal as strings but have different bytes.
        ("{\"\u{E9}\":1,\"e\u{301}\":2,\"type\":\"a\",\"size\":3}", "a", 3),
    ])
    func accepts(head: String, type: String, size: Int) throws {
        let bytes = Array(head.utf8)
        let step = HeadStep.head(HeadLine(type: type), length: bytes.count + 2, contentLength: size)
        #expect(try framing.decodeHead(in: bytes + [13, 10]) == step)
        #expect(try framing.decodeHead(in: bytes + [13, 10] + bytes + [13, 10]) == step, "whatever follows")
    }

    @Test(arguments: [
        "", " ", "x", "[]", "null", "\"type\"", "{", "}", "{}", "{]", "{,}",
        #"{"type":"a"}"#, #"{"size":3}"#, #"{"Type":"a","size":3}"#, #"{"type ":"a","size":3}"#,
        // The object
        #"{"type":"a","size":3"#, #"{"type":"a","size":3,}"#, #"{"type":"a" "size":3}"#, #"{"type":"a",,"size":3}"#,
        #"{"type":"a","size":3}}"#, #"{"type":"a","size":3} x"#, #"{"type":"a","size":3}{}"#, #"{"type" "a","size":3}"#,
        #"{type:"a","size":3}"#, #"{'type':'a','size':3}"#, #"{"type":"a","size":3}//"#, #"{"type"::"a","size":3}"#,
        "\u{FEFF}{\"type\":\"a\",\"size\":3}", "\u{A0}{\"type\":\"a\",\"size\":3}", "{\"type\":\"a\",\r\"size\":3}",
        "{\"type\":\"a\",\u{B}\"size\":3}",
        // The type
        #"{"type":1,"size":3}"#, #"{"type":null,"size":3}"#, #"{"type":["a"],"size":3}"#, #"{"type":"a,"size":3}"#,
        // The size
        #"{"type":"a","size":-1}"#, #"{"type":"a","size":-0}"#, #"{"type":"a","size":+1}"#, #"{"type":"a","size":01}"#,
        #"{"type":"a","size":1.0}"#, #"{"type":"a","size":1e2}"#, #"{"type":"a","size":1E2}"#,
        #"{"type":"a","size":0x1}"#,
        #"{"type":"a","size":}"#, #"{"type":"a","size":null}"#, #"{"type":"a","size":true}"#,
        #"{"type":"a","size":[1]}"#,
        #"{"type":"a","size":""}"#, #"{"type":"a","size":" 1"}"#, #"{"type":"a","size":"1 "}"#,
        #"{"type":"a","size":"01"}"#,
        #"{"type":"a","size":"-1"}"#, #"{"type":"a","size":"1.0"}"#, #"{"type":"a","size":"１"}"#,
        #"{"type":"a","size":"1}"#,
        // Twice
        #"{"type":"a","type":"a","size":3}"#, #"{"type":"a","size":3,"size":3}"#, #"{"x":1,"type":"a","size":3,"x":1}"#,
        #"{"type":"a","\u0074ype":"a","size":3}"#, #"{"é":1,"\u00e9":1,"type":"a","size":3}"#,
        // Strings
        #"{"type":"\x","size":3}"#, #"{"type":"\u12","size":3}"#, #"{"type":"\u12G4","size":3}"#,
        #"{"type":"\U0041","size":3}"#,
        #"{"type":"\ud800","size":3}"#, #"{"type":"\udc00","size":3}"#, #"{"type":"\ud800\ud800","size":3}"#,
        #"{"type":"\ud800x","size":3}"#, #"{"type":"\ud800\n","size":3}"#, #"{"type":"\udc00\ud800","size":3}"#,
        #"{"type":"\ud800\u0041","size":3}"#, "{\"type\":\"\t\",\"size\":3}", "{\"type\":\"\u{0}\",\"size\":3}",
        #"{"type":"a","size":3,"x":"\"#, #"{"type":"a","size":3,"x":"\u"#, #"{"type":"a","size":3,"x"#,
        // Skipped values
        #"{"x":,"type":"a","size":3}"#, #"{"x":tru,"type":"a","size":3}"#, #"{"x":truee,"type":"a","size":3}"#,
        #"{"x":nul"#, #"{"x":00,"type":"a","size":3}"#, #"{"x":-,"type":"a","size":3}"#,
        #"{"x":1.,"type":"a","size":3}"#,
        #"{"x":.5,"type":"a","size":3}"#, #"{"x":1e,"type":"a","size":3}"#, #"{"x":1e+-1,"type":"a","size":3}"#,
        #"{"x":-01,"type":"a","size":3}"#, #"{"x":NaN,"type":"a","size":3}"#, #"{"x":[1,],"type":"a","size":3}"#,
        #"{"x":[1 2],"type":"a","size":3}"#, #"{"x":[},"type":"a","size":3}"#, #"{"x":{"a"},"type":"a","size":3}"#,
        #"{"x":{"a":1,},"type":"a","size":3}"#, #"{"x":{1:1},"type":"a","size":3}"#,
        #"{"x":{"a":1],"type":"a","size":3}"#,
        #"{"x":["\q"],"type":"a","size":3}"#, #"{"x":"\ud800","type":"a","size":3}"#,
        #"{"\ud800":1,"type":"a","size":3}"#,
    ])
    func refuses(head: String) {
        #expect(framing.failure(in: Array(head.utf8) + [13, 10]) == .malformedHead)
        #expect(!head.isEmpty || framing.failure(in: [10]) == .malformedHead)
    }

    @Test(
        arguments: [
            [0xFF], [0x80], [0xC3], [0xC0, 0x80], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80],
            [0xF0, 0x9F, 0x8E],
        ] as [[UInt8]]
    )
    func refusesInvalidUTF8(bytes: [UInt8]) {
        let after = Array("\",\"size\":3}\r\n".utf8)
        #expect(framing.failure(in: Array("{\"type\":\"".utf8) + bytes + after) == .malformedHead)
        #expect(framing.failure(in: Array("{\"type\":\"a\",\"x\":\"".utf8) + bytes + after) == .malformedHead)
        #expect(
            framing.failure(in: Array("{\"type\":\"a\",\"".utf8) + bytes + Array("\":1,\"size\":3}\r\n".utf8))
                == .malformedHead
        )
    }

    @Test func theLineMustEndWithCRLF() {
        #expect(framing.failure(in: Array("{\"type\":\"a\",\"size\":3}\n".utf8)) == .malformedHead)
        #expect(framing.failure(in: Array("{\"type\":\"a\",\"size\":3}\n\r\n".utf8)) == .malformedHead)
        #expect(framing.failure(in: Array("{\"type\":\"a\",\"size\":3}\r\r\n".utf8)) == .malformedHead)
    }

    @Test func anotherProtocolIsRefusedAtItsFirstByte() {
        for bytes in ["GET / HTTP/1.1", "\u{16}\u{3}", "\r", "abc"] {
            let error = #expect(throws: FramingError.self) { try framing.decodeHead(in: [UInt8](bytes.utf8.prefix(1))) }
            #expect(error?.code == .malformedHead)
        }
    }

    // MARK: Limits

    @Test(arguments: [0, 1, 100, 4 << 20])
    func enforcesTheLimitExactly(limit: Int) throws {
        let framing = HeadLineFraming(maximumContentLength: limit)
        _ = try framing.head(HeadLine(type: "a"), contentLength: limit)
        let error = #expect(throws: FramingError.self) {
            try framing.headLength(of: HeadLine(type: "a"), contentLength: limit + 1)
        }
        #expect(error?.code == .payloadTooLarge)
        for text in ["\(limit)", "\"\(limit)\""] {
            let head = Array("{\"type\":\"a\",\"size\":\(text)}\r\n".utf8)
            let step = HeadStep.head(HeadLine(type: "a"), length: head.count, contentLength: limit)
            #expect(try framing.decodeHead(in: head) == step)
        }
        for size in [
            "\(limit + 1)", "9223372036854775807", "9223372036854775808", "1" + String(repeating: "0", count: 100),
        ] {
            for text in [size, "\"\(size)\""] {
                #expect(framing.failure(in: Array("{\"type\":\"a\",\"size\":\(text)}\r\n".utf8)) == .frameTooLarge)
            }
        }
    }

    /// With its CRLF.
    @Test func aHeadMayHaveFourKibibytes() throws {
        let frame = Array("{\"type\":\"a\",\"size\":0}".utf8)
        func head(_ count: Int) -> [UInt8] {
            frame + [UInt8](repeating: 32, count: count - frame.count - 2) + [13, 10]
        }
        #expect(try framing.frames(in: [head(4096)]).count == 1)
        #expect(try framing.frames(in: head(4096).map { [$0] }).count == 1)
        #expect(try framing.frames(in: [Array(head(4096).dropLast()), [10] + head(4096)]).count == 2)
        #expect(framing.failure(in: head(4097)) == .headTooLarge)
        #expect(framing.failure(in: head(4098)) == .headTooLarge)
        #expect(framing.failure(in: frame + [UInt8](repeating: 32, count: 4096 - frame.count)) == .headTooLarge)

        // 23 bytes do not belong to the type.
        let longest = HeadLine(type: String(repeating: "x", count: 4096 - 23))
        #expect(try framing.head(longest, contentLength: 10).count == 4096)
        for type in [longest.type + "x", String(repeating: "\n", count: 700)] {
            let error = #expect(throws: FramingError.self) {
                try framing.headLength(of: HeadLine(type: type), contentLength: 10)
            }
            #expect(error?.code == .invalidHead)
        }
    }

    @Test func nestingIsBounded() throws {
        func head(_ open: String, _ close: String, _ depth: Int) -> [UInt8] {
            let value = String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
            return Array("{\"x\":\(value),\"type\":\"a\",\"size\":3}\r\n".utf8)
        }
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            #expect(throws: Never.self) { try framing.decodeHead(in: head(open, close, 32)) }
            #expect(framing.failure(in: head(open, close, 33)) == .malformedHead)
        }
        let error = #expect(throws: FramingError.self) {
            try framing.decodeHead(in: Array(("{\"x\":" + String(repeating: "[", count: 4000)).utf8) + [13, 10])
        }
        #expect(error?.message.contains("nested") == true)
    }

    /// As many names as fit, which differ only at their ends.
    @Test func manyMembers() throws {
        let members = (100..<600).map { "\"\($0)\":0" }.joined(separator: ",")
        #expect(members.utf8.count > 3900)
        let head = Array("{\(members),\"type\":\"a\",\"size\":3}\r\n".utf8)
        #expect(throws: Never.self) { try framing.decodeHead(in: head) }
        #expect(
            framing.failure(in: Array("{\(members),\"599\":0,\"type\":\"a\",\"size\":3}\r\n".utf8)) == .malformedHead
        )
    }
}
