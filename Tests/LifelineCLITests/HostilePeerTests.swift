import Foundation
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import Testing

/// A receiver that anyone can connect to: no peer can harm it or the other peers.
@Suite(.timeLimit(.minutes(5))) struct HostilePeerTests {
    /// Prefixes that are refused or incomplete, frames without a ChatMessage, and input that breaks other decoders.
    private static let vectors: [[UInt8]] = [
        [0x80, 0x80, 0x80], [0x80, 0x80, 0x80, 0x80], [0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
        [0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [0xFF, 0xFF, 0xFF, 0xFF, 0x1F], [0xFF, 0xFF, 0xFF, 0x01], [0x05, 0x0A],
        [0x01, 0xFF], [0x01, 0x00], [0x02, 0x0A, 0x05], [0x03, 0x0A, 0x01, 0xFF], [0x01, 0x0F], [0x01, 0x0C],
        delimited(nested(depth: 20_000)), delimited([UInt8](repeating: 0x0B, count: 100_000)),
        delimited([UInt8]((0..<500_000).flatMap { _ in [0x2A, 0x00] as [UInt8] })),
    ]

    @Test func hostileBytesHarmOnlyTheirOwnConnection() async throws {
        var random = SeededGenerator(seed: 20_260_000)
        let good = try ChatMessage.with { $0.text = "good" }.withDelimitedBytes { [UInt8]($0) }
        let randomCount = 10_000
        // A steady connection sends one good message after each attack, and the receiver ends after that many. A valid
        // message in an attack is printed, too, so the limit may be reached earlier.
        let attackCount = Self.vectors.count + randomCount
        let output = try await receive(options: chatSchema, count: attackCount, format: "delimited") { endpoint in
            let port = try #require(Int(endpoint.split(separator: ":").last ?? ""))
            let steady = try await RawSocket.connect(toPort: port)
            do {
                for number in 0..<attackCount {
                    let bytes =
                        number < Self.vectors.count
                        ? Self.vectors[number] : random.bytes(Int.random(in: 1...300, using: &random))
                    let attacker = try await RawSocket.connect(toPort: port)
                    // The receiver may cut the attacker off at any moment.
                    try? await attacker.write(bytes)
                    try? attacker.finish()
                    try await steady.write(good)
                }
            } catch is RawSocket.Failure {
                // The limit was reached, and the receiver has ended.
            }
        }
        let goodCount = output.count / good.count
        #expect(goodCount > attackCount / 2, "most of what arrived is from the steady connection")
    }

    /// It has 40 descriptors, and needs some itself. Further clients wait in the kernel.
    @Test func aReceiverServesOnAfterItHasRunOutOfDescriptors() async throws {
        let command = "exec 3>&1; ulimit -n 40; \"$0\" receive --on tcp://127.0.0.1:0 --count 1 2>&3 3>&- >/dev/null"
        let lifeline = try Program.product("lifeline", []).path
        let good = try ChatMessage.with { $0.text = "good" }.withDelimitedBytes { [UInt8]($0) }
        try await Program(URL(filePath: "/bin/sh"), ["-c", command, lifeline]).run { line in
            let port = try #require(Int(line.split(separator: ":").last ?? ""))
            var clients: [RawSocket] = []
            for _ in 0..<100 { clients.append(try await RawSocket.connect(toPort: port)) }
            for client in clients { try client.finish() }
            clients = []
            let client = try await RawSocket.connect(toPort: port)
            try await client.write(good)
            // The command ends after the message.
            _ = try? await client.read()
        }
    }

    private static func nested(depth: Int) -> [UInt8] {
        // ChatMessage.reply_to is field 14.
        (0..<depth).reduce([]) { inner, _ in [14 << 3 | 2] + varint(inner.count) + inner }
    }

    private static func delimited(_ payload: [UInt8]) -> [UInt8] { varint(payload.count) + payload }

    private static func varint(_ value: Int) -> [UInt8] {
        value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7F) | 0x80] + varint(value >> 7)
    }
}
