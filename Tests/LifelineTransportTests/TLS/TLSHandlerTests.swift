import Glibc
import LifelineCore
import LifelineTestSupport
import Logging
import NIOCore
import NIOEmbedded
import NIOSSL
import Testing

@testable import LifelineTransport

/// The handler around NIOSSL's during the handshake.
@Suite struct TLSHandlerTests {
    /// A client's bytes. The server's channel gets them when it reads, as from a socket.
    private final class Socket: ChannelDuplexHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundIn = ByteBuffer
        private static let chunk = 1000

        var waiting = ByteBuffer()
        private(set) var isAskedFor = true

        func read(context: ChannelHandlerContext) { isAskedFor = true }

        /// Hands bytes on for as long as it is asked to.
        func pump(_ channel: EmbeddedChannel) {
            while isAskedFor, let bytes = waiting.readSlice(length: min(Socket.chunk, waiting.readableBytes)),
                bytes.readableBytes > 0
            {
                isAskedFor = false
                channel.pipeline.fireChannelRead(bytes)
                channel.pipeline.fireChannelReadComplete()
                // As in a channel that reads by itself.
                channel.pipeline.read()
            }
        }
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        var count = 0

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { count += unwrapInboundIn(data).readableBytes }
    }

    /// A server that delays the verification of a client, and the client.
    private struct Scene {
        let server = EmbeddedChannel()
        let client = EmbeddedChannel()
        let socket = Socket()
        let collector = Collector()
        let verdict: EventLoopPromise<Void>
        let established: EventLoopFuture<Void>

        init(version: TLSVersion) throws {
            let root = try TestCertificate.authority()
            let (own, clients) = (try TestCertificate.localhost(issuedBy: root), try TestCertificate(issuedBy: root))
            var configuration = TLSServerConfiguration(
                identity: TLSIdentity(certificateChain: .bytes(try own.pem), privateKey: .bytes(own.keyPEM))
            )
            configuration.clientRoots = [.bytes(try root.pem)]
            let certificates = try ServerCertificates(configuration, logger: Logger(label: "test"))
            let handler = TLSHandler(peer: "the client", handshakeDone: server.eventLoop.makePromise())
            let verdict = server.eventLoop.makePromise(of: Void.self)
            self.verdict = verdict
            let address = try SocketAddress(ipAddress: "127.0.0.1", port: 1)
            try server.connect(to: address).wait()
            try server.pipeline.syncOperations.addHandler(socket)
            let tls = NIOSSLServerHandler(
                context: certificates.loaded.context,
                customVerificationCallback: handler.verificationCallback { _, _ in verdict.futureResult }
            )
            established = handler.add(behind: tls, to: server)
            try server.pipeline.syncOperations.addHandler(collector)

            var clientConfiguration = TLSConfiguration.makeClientConfiguration()
            clientConfiguration.maximumTLSVersion = version
            clientConfiguration.certificateVerification = .none
            clientConfiguration.certificateChain = [
                .certificate(try NIOSSLCertificate(bytes: clients.der, format: .der))
            ]
            clientConfiguration.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: clients.keyPEM, format: .pem))
            let context = try NIOSSLContext(configuration: clientConfiguration)
            try client.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: context, serverHostname: nil))
            try client.connect(to: address).wait()
        }

        /// Carries bytes in both directions until neither side has or wants more.
        func pump() throws {
            var isMoving = true
            while isMoving {
                isMoving = false
                server.embeddedEventLoop.run()
                while var bytes = try client.readOutbound(as: ByteBuffer.self) {
                    socket.waiting.writeBuffer(&bytes)
                    isMoving = true
                }
                socket.pump(server)
                while let bytes = try server.readOutbound(as: ByteBuffer.self) {
                    try client.writeInbound(bytes)
                    isMoving = true
                }
            }
        }

        var isEstablished: Bool {
            var isEstablished = false
            established.assumeIsolated().whenSuccess { isEstablished = true }
            return isEstablished
        }
    }

    private static let flood = 1 << 20

    /// Its bytes would have to be kept meanwhile, although the client is not verified.
    @Test func aPeerThatIsVerifiedIsNotRead() throws {
        let scene = try Scene(version: .tlsv13)
        scene.client.writeAndFlush(ByteBuffer(repeating: 7, count: Self.flood), promise: nil)
        try scene.pump()
        #expect(scene.socket.waiting.readableBytes >= Self.flood, "the client has sent all, and none of it is read")
        #expect(!scene.socket.isAskedFor && !scene.isEstablished && scene.collector.count == 0)
        scene.verdict.succeed()
        try scene.pump()
        #expect(scene.isEstablished && scene.collector.count == Self.flood)
        #expect(scene.socket.waiting.readableBytes == 0 && scene.socket.isAskedFor)
    }

    /// The rest of its handshake comes after the verdict.
    @Test func aPeerOfTLS12IsReadOn() throws {
        let scene = try Scene(version: .tlsv12)
        scene.client.writeAndFlush(ByteBuffer(repeating: 7, count: Self.flood), promise: nil)
        try scene.pump()
        // The bytes that a client may send before it has proved that it has the key.
        let rest = scene.socket.waiting.readableBytes
        scene.socket.waiting.writeRepeatingByte(0, count: Self.flood)
        try scene.pump()
        #expect(scene.socket.waiting.readableBytes == rest + Self.flood && !scene.isEstablished)
        scene.socket.waiting =
            scene.socket.waiting.getSlice(
                at: scene.socket.waiting.readerIndex,
                length: rest
            ) ?? ByteBuffer()
        scene.verdict.succeed()
        try scene.pump()
        #expect(scene.isEstablished && scene.collector.count == Self.flood)
    }

    @Test func aPeerThatIsRefusedIsNotReadEither() throws {
        let scene = try Scene(version: .tlsv13)
        scene.client.writeAndFlush(ByteBuffer(repeating: 7, count: Self.flood), promise: nil)
        try scene.pump()
        let refusal = ConnectionError(code: .certificateUntrusted, message: "No.")
        var error: (any Error)?
        scene.established.assumeIsolated().whenFailure { error = $0 }
        scene.verdict.fail(refusal)
        scene.server.embeddedEventLoop.run()
        #expect((error as? ConnectionError)?.code == .certificateUntrusted)
        #expect(scene.collector.count == 0 && !scene.server.isActive)
    }

    // MARK: Failures

    /// Only a reset and an end come from the peer.
    @Test(
        arguments: [
            (ETIMEDOUT, "broke before", .peerUnresponsive), (EHOSTUNREACH, "broke before", .peerUnresponsive),
            (ECONNRESET, "closed it before", .closedByPeer),
        ] as [(CInt, String, ConnectionError.Code)]
    )
    func whyAHandshakeFailedIsKept(number: CInt, text: String, code: ConnectionError.Code) throws {
        var configuration = TLSClientConfiguration()
        configuration.trust = .roots(.bytes(try TestCertificate.authority().pem))
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let added = try TLSClientLayer(configuration, host: "localhost").add(to: channel)
        channel.pipeline.fireErrorCaught(IOError(errnoCode: number, reason: "read"))
        let cut = try #require(throws: HandshakeCut.self) { try added.wait() }
        #expect((cut.cause as? IOError)?.errnoCode == number)
        let endpoint = Endpoint.tls(host: "localhost", port: 1)
        let told = ConnectionError(connecting: endpoint, failedWith: cut, timeout: .seconds(1))
        #expect(told.code == .connectFailed && told.message.contains(text))
        #expect((told.cause as? IOError)?.errnoCode == number)
        let accepted = ConnectionError(acceptingOn: endpoint, failedWith: cut)
        #expect(accepted.code == code)
        #expect((accepted.cause as? IOError)?.errnoCode == number)
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }
}
