import LifelineCore
import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

/// The close of a connection with a layer: in order through the layer, and otherwise past it.
@Suite struct LayerClosingTests {
    private let channel = EmbeddedChannel()
    private let layer = ReluctantLayer.Handler()
    private let handler: ConnectionHandler<RecordingReceiver>

    init() throws {
        var options = ConnectionOptions(
            maximumFrameLength: 100,
            connectTimeout: .seconds(10),
            closeTimeout: .seconds(5),
            outboundMarks: WaterMarks(low: 10, high: 20),
            metrics: TransportMetrics(role: "test")
        )
        options.layers = [ReluctantLayer(handler: nil)]
        handler = ConnectionHandler(receiver: RecordingReceiver(inbox: Record()), options: options)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandlers(SocketEnd(), layer, handler)
    }

    @Test func anEndInOrderIsTheLayers() throws {
        handler.close()
        channel.embeddedEventLoop.run()
        #expect(layer.endCount == 1)
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(layer.closeCount == 1)
        #expect(channel.isActive, "the layer closes when it likes")
    }

    @Test func aPeerThatNeverEndsIsLeftPastTheLayer() throws {
        handler.close()
        channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
        #expect(layer.closeCount == 0, "it would not have closed")
    }

    @Test func aCutGoesPastTheLayer() throws {
        handler.fail(.closedLocally, resetting: true)
        #expect(!channel.isActive)
        #expect(layer.endCount == 0 && layer.closeCount == 0, "it must not say that it is the end")
    }

    @Test(arguments: [true, false]) func aLayerThatTakesTooLong(hasFailed: Bool) throws {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let handler = ReluctantLayer.Handler()
        let promise = channel.eventLoop.makePromise(of: Void.self)
        let layer = ReluctantLayer(handler: .init(handler, eventLoop: channel.eventLoop), done: promise)
        let added = channel.addLayers([layer], deadline: .uptimeNanoseconds(1_000_000_000)) { _ in
            Issue.record("nothing is to be added")
        }
        struct Refused: Error {}
        handler.completesEnd = false
        if hasFailed { promise.fail(Refused()) }
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(999))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(!channel.isActive)
        #expect(handler.endCount == 1 && handler.closeCount == 0)
        let error = #expect(throws: (any Error).self) { try added.wait() }
        #expect(hasFailed ? error is Refused : (error as? HandshakeTimeout)?.handshakeName == "the test's handshake")
        if let error {
            let endpoint = Endpoint.tls(host: "localhost", port: 1)
            let told = ConnectionError(connecting: endpoint, failedWith: error, timeout: .seconds(1))
            #expect(told.code == (hasFailed ? .connectFailed : .connectTimeout))
            #expect(hasFailed || told.message.contains("the test's handshake was not done within 1.0 seconds"))
        }
        if !hasFailed { promise.fail(Refused()) }
    }

    /// A connection does not keep its setup closure after the setup.
    @Test(arguments: [true, false]) func theSetupOfLayersIsReleased(hasFailed: Bool) throws {
        final class Token {}
        var token: Token? = Token()
        weak let kept = token
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let added = channel.addLayers([], deadline: .uptimeNanoseconds(1_000_000_000)) { [token] _ in
            withExtendedLifetime(token) {}
            if hasFailed { throw ChannelError.eof }
        }
        token = nil
        channel.embeddedEventLoop.run()
        #expect((try? added.wait()) == nil ? hasFailed : !hasFailed)
        #expect(channel.isActive == !hasFailed)
        #expect(kept == nil)
    }

    /// A peer that does not close its side must not delay the error.
    @Test func aLayerThatHasFailedIsNotWaitedFor() throws {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let handler = ReluctantLayer.Handler()
        let promise = channel.eventLoop.makePromise(of: Void.self)
        let layer = ReluctantLayer(handler: .init(handler, eventLoop: channel.eventLoop), done: promise)
        let added = channel.addLayers([layer], deadline: .uptimeNanoseconds(1_000_000_000)) { _ in
            Issue.record("nothing is to be added")
        }
        promise.fail(ChannelError.eof)
        #expect(!channel.isActive && handler.endCount == 1 && handler.closeCount == 0)
        #expect(throws: ChannelError.eof) { try added.wait() }
    }
}

/// A layer that waits for its peer for ever before it closes.
private struct ReluctantLayer: ChannelLayer {
    let handshakeName = "the test's handshake"
    let handler: NIOLoopBound<Handler>?
    var done: EventLoopPromise<Void>?

    func add(to channel: any Channel) -> EventLoopFuture<Void> {
        guard let handler, let done else { return channel.eventLoop.makeSucceededVoidFuture() }
        try? channel.pipeline.syncOperations.addHandler(handler.value)
        return done.futureResult
    }

    final class Handler: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var endCount = 0
        var closeCount = 0
        var completesEnd = true
        private var keptPromise: EventLoopPromise<Void>?

        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            if mode == .output {
                endCount += 1
                if completesEnd { promise?.succeed() } else { keptPromise = promise }
            } else {
                closeCount += 1
            }
        }

        func handlerRemoved(context: ChannelHandlerContext) {
            keptPromise?.fail(ChannelError.ioOnClosedChannel)
        }
    }
}
