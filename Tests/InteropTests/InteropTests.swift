import Foundation
import Lifeline
import LifelineCore
import LifelineProtos
import LifelineTestSupport
import Testing

typealias ChatMessage = Sample_Chat_V1_ChatMessage

/// Delimited streams, through files and sockets, with programs that use the libraries of other languages.
@Suite(.timeLimit(.minutes(2)), .serialized) struct InteropTests {
    @Test(arguments: Peer.withFiles, Corpus.allCases)
    func aPeerReadsWhatWeWrite(peer: Peer, corpus: Corpus) async throws {
        let ours = try encode(decode(corpus.reference))
        try await peer.run(["check", corpus.rawValue], input: ours)
    }

    @Test(arguments: Peer.withFiles, Corpus.allCases)
    func weReadWhatAPeerWrites(peer: Peer, corpus: Corpus) async throws {
        let theirs = try decode(await peer.run(["make", corpus.rawValue]))
        let reference = try decode(corpus.reference)
        #expect(theirs.count == corpus.count)
        #expect(theirs == reference)
    }

    @Test(arguments: Peer.allCases, Corpus.allCases)
    func ourClientTalksToAPeersServer(peer: Peer, corpus: Corpus) async throws {
        let messages = try decode(corpus.reference)
        let server = Program(peer.program, ["echo-server"])
        let echoed = try await server.run { line in
            let port = try #require(UInt16(line))
            return try await withConnection(
                to: .tcp(host: "127.0.0.1", port: port),
                receiving: ChatMessage.self,
                sending: ChatMessage.self
            ) { connection in
                async let sending: Void = {
                    try await connection.send(contentsOf: messages)
                    try await connection.finishSending()
                }()
                var echoed: [ChatMessage] = []
                for try await message in connection.messages { echoed.append(message) }
                try await sending
                return echoed
            }
        }
        #expect(echoed == messages)
    }

    @Test(arguments: Peer.allCases, Corpus.allCases)
    func aPeersClientTalksToOurServer(peer: Peer, corpus: Corpus) async throws {
        try await withServer(
            listeningOn: .tcp(host: "127.0.0.1", port: 0),
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: { server in
            let port = try #require(await server.boundEndpoint.port)
            try await peer.run(["echo-client", "\(port)", corpus.rawValue])
        }
    }

    private func decode(_ stream: Data) throws -> [ChatMessage] {
        var assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: 4 << 20))
        var collector = MessageCollector()
        try stream.withUnsafeBytes { try assembler.receive($0, into: &collector) }
        try assembler.finish()
        return collector.messages
    }

    private func encode(_ messages: [ChatMessage]) throws -> Data {
        var stream = Data()
        for message in messages { try message.withDelimitedBytes { stream.append(contentsOf: $0) } }
        return stream
    }
}

private struct MessageCollector: FrameSink {
    var messages: [ChatMessage] = []

    mutating func receive(frame: UnsafeRawBufferPointer) throws {
        messages.append(try ChatMessage(serializedBytes: frame))
    }
}
