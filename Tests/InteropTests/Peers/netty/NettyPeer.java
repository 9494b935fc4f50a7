import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.protobuf.ProtobufDecoder;
import io.netty.handler.codec.protobuf.ProtobufEncoder;
import io.netty.handler.codec.protobuf.ProtobufVarint32FrameDecoder;
import io.netty.handler.codec.protobuf.ProtobufVarint32LengthFieldPrepender;
import io.netty.util.concurrent.ImmediateEventExecutor;
import io.netty.util.concurrent.Promise;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import sample.chat.v1.Chat.ChatMessage;

/** The Netty peer, with its varint32 codec: see ../README.md for what its commands do. */
public final class NettyPeer {
    public static void main(String[] arguments) throws Exception {
        NioEventLoopGroup group = new NioEventLoopGroup(1);
        try {
            switch (arguments[0]) {
                case "echo-server" -> echoServer(group);
                case "echo-client" ->
                    echoClient(group, Integer.parseInt(arguments[1]), Peer.corpus(arguments[2]));
                default -> throw new IllegalArgumentException("unknown command " + arguments[0]);
            }
        } finally {
            group.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
        }
    }

    /** Adds Netty's standard codec, and a handler of messages behind it. */
    private static ChannelInitializer<SocketChannel> pipeline(SimpleChannelInboundHandler<ChatMessage> handler) {
        return new ChannelInitializer<>() {
            @Override
            protected void initChannel(SocketChannel channel) {
                ChannelPipeline pipeline = channel.pipeline();
                pipeline.addLast(new ProtobufVarint32FrameDecoder());
                pipeline.addLast(new ProtobufDecoder(ChatMessage.getDefaultInstance()));
                pipeline.addLast(new ProtobufVarint32LengthFieldPrepender());
                pipeline.addLast(new ProtobufEncoder());
                pipeline.addLast(handler);
            }
        };
    }

    private static void echoServer(NioEventLoopGroup group) throws Exception {
        Echo echo = new Echo();
        Channel server = new ServerBootstrap()
                .group(group)
                .channel(NioServerSocketChannel.class)
                .childOption(ChannelOption.ALLOW_HALF_CLOSURE, true)
                .childHandler(pipeline(echo))
                .bind(InetAddress.getLoopbackAddress(), 0)
                .sync()
                .channel();
        System.out.println(((InetSocketAddress) server.localAddress()).getPort());
        echo.finished.sync();
        server.close().sync();
    }

    /** Sends back each message, and closes after the client has ended its side. */
    private static final class Echo extends SimpleChannelInboundHandler<ChatMessage> {
        final Promise<Void> finished = ImmediateEventExecutor.INSTANCE.newPromise();
        private ChannelFuture lastWrite;

        @Override
        protected void channelRead0(ChannelHandlerContext context, ChatMessage message) {
            lastWrite = context.writeAndFlush(message);
        }

        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (event instanceof ChannelInputShutdownEvent) {
                ChannelFuture written = lastWrite != null ? lastWrite : context.newSucceededFuture();
                written.addListener(ignored -> context.close());
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            finished.setSuccess(null);
        }
    }

    private static void echoClient(NioEventLoopGroup group, int port, List<ChatMessage> messages) throws Exception {
        List<ChatMessage> received = new ArrayList<>();
        SimpleChannelInboundHandler<ChatMessage> collector = new SimpleChannelInboundHandler<>() {
            @Override
            protected void channelRead0(ChannelHandlerContext context, ChatMessage message) {
                received.add(message);
            }
        };
        SocketChannel channel = (SocketChannel) new Bootstrap()
                .group(group)
                .channel(NioSocketChannel.class)
                .handler(pipeline(collector))
                .connect(InetAddress.getLoopbackAddress(), port)
                .sync()
                .channel();
        ChannelFuture lastWrite = channel.newSucceededFuture();
        for (ChatMessage message : messages) {
            lastWrite = channel.writeAndFlush(message);
        }
        lastWrite.sync();
        channel.shutdownOutput().sync();
        channel.closeFuture().sync();
        Peer.check(received, messages);
    }
}
