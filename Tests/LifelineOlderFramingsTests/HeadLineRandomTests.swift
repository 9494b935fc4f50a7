import Foundation
import LifelineCore
import LifelineOlderFramings
import LifelineTestSupport
import Testing

private let framing = HeadLineFraming(maximumContentLength: 1 << 20)

/// Random heads, streams of them, and damaged ones.
@Suite struct HeadLineRandomTests {
    @Test(arguments: UInt64(0)..<100)
    func randomStreams(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        var expected: [HeadedFrame<HeadLine>] = []
        for _ in 0..<30 {
            let type = text(using: &random)
            let content = random.bytes(Int.random(in: 0...Int.random(in: 0...3000, using: &random), using: &random))
            if Bool.random(using: &random) {
                bytes += try framing.frame(HeadLine(type: type), content)
            } else {
                bytes += head(type: type, size: content.count, using: &random) + content
            }
            expected.append(HeadedFrame(head: HeadLine(type: type), content: content))
        }
        let chunks = randomChunks(of: bytes, upTo: [3, 50, 5000].randomElement(using: &random)!, using: &random)
        #expect(try framing.frames(in: chunks) == expected)
    }

    /// An accepted damaged head has to be JSON with the same type and size for an independent reader, and has to
    /// survive writing and reading.
    @Test(arguments: UInt64(0)..<50)
    func damagedHeads(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var acceptedCount = 0
        for _ in 0..<400 {
            var line = head(type: text(using: &random), size: Int.random(in: 0...1000, using: &random), using: &random)
            for _ in 0..<Int.random(in: 0...2, using: &random) { damage(&line, using: &random) }
            guard case .head(let head, let length, let size)? = try? framing.decodeHead(in: line) else { continue }
            acceptedCount += 1
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(line[..<length])) as? [String: Any],
                "what is accepted is JSON"
            )
            let type = try #require(object["type"] as? String)
            #expect(type.utf8.elementsEqual(head.type.utf8))
            #expect("\(object["size"] ?? "")" == "\(size)")
            let written = try framing.head(head, contentLength: size)
            #expect(try framing.decodeHead(in: written) == .head(head, length: written.count, contentLength: size))
        }
        #expect(acceptedCount > 100, "undamaged ones at the least")
    }

    private func damage(_ line: inout [UInt8], using random: inout SeededGenerator) {
        let place = Int.random(in: 0..<line.count, using: &random)
        let token = ["\"", "\\", "{", "}", "[", "]", ",", ":", "\\u", "\\ud800", "0", "-", ".", "e", " ", "\r\n"]
        switch Int.random(in: 0..<4, using: &random) {
        case 0: line[place] = UInt8.random(in: 0...255, using: &random)
        case 1: line.remove(at: place)
        case 2: line.insert(contentsOf: token.randomElement(using: &random)!.utf8, at: place)
        default: line.swapAt(place, Int.random(in: 0..<line.count, using: &random))
        }
        if line.isEmpty { line = [0] }
    }

    private func text(using random: inout SeededGenerator) -> String {
        let characters: [Unicode.Scalar] = [
            "a", "Z", " ", "\"", "\\", "/", "\u{0}", "\n", "\u{7F}", "é", "日", "🎉", "\u{10FFFF}",
        ]
        let count = Int.random(in: 0...10, using: &random)
        var text = ""
        for _ in 0..<count { text.unicodeScalars.append(characters.randomElement(using: &random)!) }
        return text
    }

    /// A head line that uses all freedoms of JSON.
    private func head(type: String, size: Int, using random: inout SeededGenerator) -> [UInt8] {
        var members = [
            (string("type", using: &random), string(type, using: &random)),
            (
                string("size", using: &random),
                Bool.random(using: &random) ? "\(size)" : string("\(size)", using: &random)
            ),
        ]
        for number in 0..<Int.random(in: 0...3, using: &random) {
            members.append((string("x\(number)", using: &random), value(depth: 0, using: &random)))
        }
        members.shuffle(using: &random)
        func space() -> String { ["", "", " ", "\t", "  "].randomElement(using: &random)! }
        let texts = members.map { "\(space())\($0.0)\(space()):\(space())\($0.1)\(space())" }
        return Array("\(space()){\(texts.joined(separator: ","))}\(space())\r\n".utf8)
    }

    private func value(depth: Int, using random: inout SeededGenerator) -> String {
        switch Int.random(in: 0..<(depth < 4 ? 8 : 6), using: &random) {
        case 0: return "null"
        case 1: return "true"
        case 2: return "false"
        case 3: return "\(Int.random(in: -1000...1000, using: &random))"
        case 4: return ["0", "-0", "0.0", "-1.5", "1e5", "2E-3", "3.25e+1"].randomElement(using: &random)!
        case 5: return string(text(using: &random), using: &random)
        case 6:
            let values = (0..<Int.random(in: 0...3, using: &random)).map { _ in value(depth: depth + 1, using: &random)
            }
            return "[\(values.joined(separator: ","))]"
        default:
            let members = (0..<Int.random(in: 0...3, using: &random)).map { number in
                "\(string("m\(number)", using: &random)):\(value(depth: depth + 1, using: &random))"
            }
            return "{\(members.joined(separator: ","))}"
        }
    }

    /// A string in JSON, with required and optional escapes.
    private func string(_ text: String, using random: inout SeededGenerator) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            let mustEscape = scalar.value < 0x20 || scalar == "\"" || scalar == "\\"
            if mustEscape || Int.random(in: 0..<5, using: &random) == 0 {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16, uppercase: Bool.random(using: &random))
                    result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
