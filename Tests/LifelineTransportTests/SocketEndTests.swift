import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

/// A socket whose layers have refused the peer is closed after the peer had time to read the reason.
@Suite struct SocketEndTests {
    private let channel = EmbeddedChannel()
    private let end = SocketEnd()
    private let socket = Socket()

    /// The events that reach the socket.
    private final class Socket: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var closes: [CloseMode] = []
        var readCount = 0

        func read(context: ChannelHandlerContext) {
            readCount += 1
            context.read()
        }

        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            closes.append(mode)
            if mode == .all { context.close(promise: promise) } else { promise?.succeed() }
        }
    }

    init() throws {
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandlers(socket, end)
    }

    @Test(arguments: [true, false]) func lingersUntilThePeerEnds(isCut: Bool) throws {
        end.lingers = true
        let reads = socket.readCount
        if isCut {
            channel.triggerUserOutboundEvent(SocketCut(), promise: nil)
        } else {
            channel.close(promise: nil)
        }
        channel.embeddedEventLoop.run()
        #expect(channel.isActive && socket.closes == [.output])
        #expect(socket.readCount > reads, "whatever the layers want")
        try channel.writeInbound(ByteBuffer(repeating: 0, count: 100))
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil, "nobody wants it")
        // A second one changes nothing.
        let closed = channel.eventLoop.makePromise(of: Void.self)
        channel.close(promise: closed)
        #expect(channel.isActive && socket.closes == [.output])
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(!channel.isActive && socket.closes == [.output, .all])
        channel.embeddedEventLoop.run()
        try closed.futureResult.wait()
    }

    @Test func doesNotWaitForAPeerThatSendsOn() throws {
        end.lingers = true
        channel.close(promise: nil)
        channel.embeddedEventLoop.advanceTime(by: SocketEnd.lingerTime - .nanoseconds(1))
        try channel.writeInbound(ByteBuffer(repeating: 0, count: 100))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .nanoseconds(1))
        #expect(!channel.isActive)
    }

    @Test func doesNotWaitForAPeerThatHasEnded() throws {
        end.lingers = true
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(channel.isActive)
        channel.close(promise: nil)
        #expect(!channel.isActive && socket.closes == [.all])
    }

    @Test func doesNotWaitForAPeerThatIsGone() throws {
        end.lingers = true
        channel.pipeline.fireChannelInactive()
        channel.close(promise: nil)
        #expect(!channel.isActive && socket.closes == [.all])
    }

    /// The handler above the layers may cut the connection as soon as it is added.
    @Test func aCutAfterTheLastLayerIsACut() throws {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let added = channel.addLayers([], deadline: .uptimeNanoseconds(1_000_000_000), lingering: true) { [socket] in
            try $0.pipeline.syncOperations.addHandler(socket, position: .first)
            $0.triggerUserOutboundEvent(SocketCut(), promise: nil)
        }
        try added.wait()
        #expect(!channel.isActive && socket.closes == [.all])
    }

    @Test func closesAtOnceWhenNobodyIsRefused() throws {
        try channel.writeInbound(ByteBuffer(repeating: 0, count: 100))
        #expect(try channel.readInbound(as: ByteBuffer.self)?.readableBytes == 100)
        channel.close(promise: nil)
        #expect(!channel.isActive && socket.closes == [.all])
    }
}
