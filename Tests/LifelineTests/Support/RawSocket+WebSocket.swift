import LifelineTestSupport

@testable import LifelineCore

extension RawSocket {
    /// Reads a complete head.
    func readHead() async throws -> String {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
            let byte = try await read(1)
            if byte.isEmpty { break }
            head += byte
        }
        return String(decoding: head, as: UTF8.self)
    }

    /// Reads a client's request, and opens its WebSocket. `early` is sent with the answer.
    func answerHandshake(early: [UInt8] = []) async throws {
        let head = try await readHead()
        let field = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-key: ") }
        let key = String(field?.dropFirst("sec-websocket-key: ".count) ?? "")
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(WebSocketAcceptance.text(for: key, sha1: sha1))\r\n\r\n"
        try await write(Array(answer.utf8) + early)
    }

    /// Asks a server for a WebSocket, and reads its answer, which must open it.
    func requestHandshake(early: [UInt8] = []) async throws {
        try await write(Array(RawSocket.request.utf8) + early)
        let head = try await readHead()
        guard head.hasPrefix("HTTP/1.1 101 ") else { throw Unexpected(head: head) }
    }

    struct Unexpected: Error {
        let head: String
    }

    static let request =
        "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
}
