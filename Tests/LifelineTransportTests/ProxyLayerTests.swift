import LifelineCore
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import LifelineTransport

@Suite struct ProxyLayerTests {
    /// The answers of a proxy, step by step, and the requests to it.
    struct Script: Sendable {
        let kind: ProxyServer.Kind
        let greeting: [UInt8]
        /// The proxy's answer, and the request for it.
        let steps: [(answer: [UInt8], reply: [UInt8])]

        static let http = Script(
            kind: .http,
            greeting: Array("CONNECT chat.example:7000 HTTP/1.1\r\nHost: chat.example:7000\r\n\r\n".utf8),
            steps: [(Array("HTTP/1.1 200 Connection established\r\nA: b\r\n\r\n".utf8), [])]
        )
        static let socks5 = Script(
            kind: .socks5,
            greeting: [5, 1, 0],
            steps: [
                ([5, 0], [5, 1, 0, 3, 12] + Array("chat.example".utf8) + [0x1B, 0x58]),
                ([5, 0, 0, 1, 127, 0, 0, 1, 0, 80], []),
            ]
        )
    }

    private static let endpoint = Endpoint.tcp(host: "chat.example", port: 7000)
    private static let payload: [UInt8] = Array("first of the endpoint's".utf8)

    /// A layer above the proxy. It is added when it is needed.
    private struct NextLayer: ChannelLayer {
        let handler: NIOLoopBound<Collector>
        let handshakeName = "nothing"

        func add(to channel: any Channel) -> EventLoopFuture<Void> {
            channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(handler.value) }
        }
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        var bytes: [UInt8] = []
        var hasInputEnded = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes += Array(unwrapInboundIn(data).readableBytesView)
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event as? ChannelEvent == .inputClosed { hasInputEnded = true }
        }
    }

    /// A channel on which the handshake has begun.
    private final class Handshake {
        let channel = EmbeddedChannel()
        let collector = Collector()
        var outcome: Result<Void, any Error>?
        var isCompleted = false

        init(_ kind: ProxyServer.Kind) throws {
            let proxy = ProxyServer(kind: kind, host: "proxy", port: 3128, credentials: nil)
            let layer = try ProxyLayer(route: ProxyRoute(proxy: proxy, endpoint: ProxyLayerTests.endpoint))
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            let next = NextLayer(handler: NIOLoopBound(collector, eventLoop: channel.eventLoop))
            channel.addLayers([layer, next], deadline: channel.embeddedEventLoop.now + .seconds(10)) { _ in
                self.isCompleted = true
            }.assumeIsolated().whenComplete { self.outcome = $0 }
        }

        func takeSent() throws -> [UInt8] {
            var bytes: [UInt8] = []
            while let buffer = try channel.readOutbound(as: ByteBuffer.self) {
                bytes += Array(buffer.readableBytesView)
            }
            return bytes
        }

        func receive(_ bytes: some Collection<UInt8>) throws {
            try channel.writeInbound(ByteBuffer(bytes: bytes))
        }

        var error: (any Error)? {
            if case .failure(let error)? = outcome { error } else { nil }
        }
    }

    @Test(arguments: [Script.http, .socks5]) func handsOnWhatComesAfter(script: Script) throws {
        let last = try #require(script.steps.last).answer
        // The last answer and the following bytes, split at every place.
        for cut in 0...last.count + Self.payload.count {
            let handshake = try Handshake(script.kind)
            #expect(try handshake.takeSent() == script.greeting)
            for step in script.steps.dropLast() {
                try handshake.receive(step.answer)
                #expect(try handshake.takeSent() == step.reply)
            }
            let bytes = last + Self.payload
            try handshake.receive(bytes[..<cut])
            #expect(handshake.isCompleted == (cut >= last.count))
            try handshake.receive(bytes[cut...])
            #expect(handshake.isCompleted && handshake.error == nil)
            #expect(handshake.collector.bytes == Self.payload)
            try handshake.receive([1, 2])
            #expect(handshake.collector.bytes == Self.payload + [1, 2], "nothing is between any more")
            handshake.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            #expect(handshake.collector.hasInputEnded && handshake.channel.isActive)
            #expect(try handshake.takeSent() == [])
        }
    }

    @Test(arguments: [Script.http, .socks5]) func oneByteAtATime(script: Script) throws {
        let handshake = try Handshake(script.kind)
        for byte in script.steps.flatMap(\.answer) + Self.payload { try handshake.receive([byte]) }
        #expect(try handshake.takeSent() == script.greeting + script.steps.flatMap(\.reply))
        #expect(handshake.isCompleted && handshake.collector.bytes == Self.payload)
        // The handshake ended in time.
        handshake.channel.embeddedEventLoop.advanceTime(by: .seconds(20))
        #expect(handshake.channel.isActive)
    }

    @Test func aRefusalClosesTheChannel() throws {
        let handshake = try Handshake(.http)
        try handshake.receive(Array("HTTP/1.1 403 Filtered\r\n\r\nbody".utf8))
        let error = handshake.error as? ConnectionError
        #expect(error?.code == .proxyRefused && error?.message.contains("Filtered") == true)
        #expect(!handshake.channel.isActive && !handshake.isCompleted)
        #expect(handshake.collector.bytes == [])
    }

    @Test(arguments: [Script.http, .socks5]) func aSlowProxyIsGivenUp(script: Script) throws {
        let handshake = try Handshake(script.kind)
        let answers = script.steps.flatMap(\.answer)
        // A byte a second: each is progress, but the handshake is too slow.
        for byte in answers.prefix(9) {
            try handshake.receive([byte])
            handshake.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        }
        #expect(handshake.channel.isActive && handshake.outcome == nil)
        handshake.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!handshake.channel.isActive && !handshake.isCompleted)
        let timeout = try #require(handshake.error as? HandshakeTimeout)
        #expect(timeout.handshakeName == "the handshake with the proxy \(script.kind.rawValue)://proxy:3128")
    }

    enum End: CaseIterable {
        case ofInput, byReset, byClosing
    }

    /// After each byte of the handshake.
    @Test(arguments: [Script.http, .socks5], End.allCases) func aProxyThatGoesAway(script: Script, end: End) throws {
        let answers = script.steps.flatMap(\.answer)
        for count in 0..<answers.count {
            let handshake = try Handshake(script.kind)
            if count > 0 { try handshake.receive(answers[..<count]) }
            switch end {
            case .ofInput: handshake.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            case .byReset: handshake.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
            case .byClosing: handshake.channel.close(promise: nil)
            }
            let error = handshake.error as? ConnectionError
            #expect(error?.code == .proxyConnectFailed)
            #expect((error?.cause is IOError) == (end == .byReset))
            #expect(!handshake.channel.isActive && !handshake.isCompleted)
        }
    }

    @Test func aChannelThatIsClosedAlready() throws {
        let channel = EmbeddedChannel()
        let proxy = ProxyServer(kind: .http, host: "proxy", port: 1, credentials: nil)
        let layer = try ProxyLayer(route: ProxyRoute(proxy: proxy, endpoint: Self.endpoint))
        #expect(throws: ConnectionError.self) { try layer.add(to: channel).wait() }
    }

    /// The error says that the proxy was not reached.
    @Test func errorsOfConnectingNameTheProxy() {
        for error in [
            ChannelError.connectTimeout(.seconds(1)), IOError(errnoCode: 111, reason: "connect"),
            HandshakeTimeout(handshakeName: "x"),
        ] as [any Error] {
            let direct = ConnectionError(connecting: Self.endpoint, failedWith: error, timeout: .seconds(1))
            #expect(direct.message.contains("tcp://chat.example:7000 ") && !direct.message.contains("proxy"))
            let proxied = ConnectionError(
                connecting: Self.endpoint,
                through: .tcp(host: "proxy", port: 3128),
                failedWith: error,
                timeout: .seconds(1)
            )
            #expect(proxied.code == direct.code)
            #expect(proxied.message.contains("he proxy proxy:3128"))
        }
    }
}
