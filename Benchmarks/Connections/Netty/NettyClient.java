import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.protobuf.ProtobufVarint32FrameDecoder;
import io.netty.handler.codec.protobuf.ProtobufVarint32LengthFieldPrepender;
import java.io.BufferedReader;
import java.io.EOFException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;

/**
 * A client with Netty's varint32 codec, which flushes when a read is complete ("netty") or every message
 * ("netty-flush-each"). It has the commands of connection-peer: see PeerCommand.
 */
public final class NettyClient {
    public static void main(String[] arguments) {
        try {
            obey(arguments);
            System.exit(0);
        } catch (Exception failure) {
            failure.printStackTrace();
            // Netty's threads would keep the process running.
            System.exit(1);
        }
    }

    private static void obey(String[] arguments) throws Exception {
        boolean flushesEach = switch (arguments[0]) {
            case "netty" -> false;
            case "netty-flush-each" -> true;
            default -> throw new IllegalArgumentException("There is no contender " + arguments[0]);
        };
        NettyClient client = new NettyClient(flushesEach);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("done " + client.perform(line.split(" ")));
        }
    }

    private final NioEventLoopGroup group = new NioEventLoopGroup(1);
    private final boolean flushesEach;
    private Channel channel;

    private NettyClient(boolean flushesEach) {
        this.flushesEach = flushesEach;
    }

    private String perform(String[] words) throws Exception {
        switch (words[0]) {
            case "open" -> {
                if (!words[2].equals("1")) {
                    throw new IllegalArgumentException("Only one connection is measured.");
                }
                open(Integer.parseInt(words[1]));
                return "0 0 0 0";
            }
            case "close" -> {
                channel.close().sync();
                return "0 0 0 0";
            }
            case "one-way" -> {
                return run(words[1], 0, words[2], words[3]);
            }
            case "echo" -> {
                return run(words[1], Integer.parseInt(words[2]), words[3], words[4]);
            }
            default -> throw new IllegalArgumentException("There is no command " + words[0]);
        }
    }

    private void open(int port) throws Exception {
        channel = new Bootstrap()
                .group(group)
                .channel(NioSocketChannel.class)
                .option(ChannelOption.TCP_NODELAY, true)
                .handler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        channel.pipeline()
                                .addLast(new ProtobufVarint32FrameDecoder())
                                .addLast(new ProtobufVarint32LengthFieldPrepender())
                                .addLast(new Sending());
                    }
                })
                .connect(InetAddress.getLoopbackAddress(), port)
                .sync()
                .channel();
    }

    /** Sends one way if nothing may be in flight. */
    private String run(String size, int inFlight, String milliseconds, String messages) throws Exception {
        CompletableFuture<String> done = new CompletableFuture<>();
        Sending handler = channel.pipeline().get(Sending.class);
        ByteBuf payload = Unpooled.directBuffer();
        for (int i = 0; i < Integer.parseInt(size); i++) {
            // No two parts are equal, so that a swapped part is detected.
            payload.writeByte(i ^ i >> 8);
        }
        long limit = Long.parseLong(milliseconds) * 1_000_000;
        channel.eventLoop().execute(() -> handler.start(payload, inFlight, limit, Long.parseLong(messages), done));
        return done.get();
    }

    private final class Sending extends SimpleChannelInboundHandler<ByteBuf> {
        private ChannelHandlerContext context;
        private ByteBuf payload;
        private boolean isOneWay;
        private boolean isSending;
        private boolean isInSend;
        private long limit;
        private long messageLimit;
        private long begin;
        private long sent;
        private long received;
        private long[] trips;
        private long lastTrip;
        private CompletableFuture<String> done;

        @Override
        public void handlerAdded(ChannelHandlerContext context) {
            this.context = context;
        }

        void start(ByteBuf payload, int inFlight, long limit, long messageLimit, CompletableFuture<String> done) {
            this.payload = payload;
            this.limit = limit;
            this.messageLimit = messageLimit;
            this.done = done;
            isOneWay = inFlight == 0;
            isSending = true;
            sent = 0;
            received = 0;
            trips = inFlight == 1 ? new long[1 << 20] : null;
            begin = System.nanoTime();
            lastTrip = begin;
            if (isOneWay) {
                sendWhileThereIsRoom();
            } else {
                for (int i = 0; i < inFlight; i++) {
                    send();
                }
                context.flush();
            }
        }

        private boolean isOver() {
            // At least one is sent, because the count is a divisor.
            if (sent == 0) {
                return false;
            }
            return messageLimit > 0 && sent >= messageLimit
                    || limit > 0 && (sent % 64 == 0 || trips != null) && System.nanoTime() - begin >= limit;
        }

        private void send() {
            sent++;
            if (flushesEach) {
                context.writeAndFlush(payload.retainedDuplicate(), context.voidPromise());
            } else {
                context.write(payload.retainedDuplicate(), context.voidPromise());
            }
        }

        private void sendWhileThereIsRoom() {
            if (isInSend) {
                return;
            }
            isInSend = true;
            while (isSending && context.channel().isWritable()) {
                if (isOver()) {
                    isSending = false;
                    context.writeAndFlush(Unpooled.EMPTY_BUFFER);
                } else {
                    send();
                    // Writes are collected up to the channel's high-water mark.
                    if (!context.channel().isWritable()) {
                        context.flush();
                    }
                }
            }
            isInSend = false;
        }

        @Override
        public void channelWritabilityChanged(ChannelHandlerContext context) {
            if (isOneWay) {
                sendWhileThereIsRoom();
            }
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
            // One echo in 64 is compared, too few to affect the times.
            if (received++ % 64 == 0 && !message.equals(isOneWay ? Unpooled.EMPTY_BUFFER : payload)) {
                throw new IllegalStateException("What came back is not what was sent.");
            }
            if (isOneWay) {
                finish();
                return;
            }
            if (trips != null && received <= trips.length) {
                long now = System.nanoTime();
                trips[(int) received - 1] = now - lastTrip;
                lastTrip = now;
            }
            if (isSending && isOver()) {
                isSending = false;
            }
            if (isSending) {
                send();
            } else if (received == sent) {
                finish();
            }
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }

        private void finish() {
            long nanoseconds = System.nanoTime() - begin;
            long median = 0;
            long percentile99 = 0;
            if (trips != null) {
                int count = (int) Math.min(received, trips.length);
                Arrays.sort(trips, 0, count);
                median = trips[count / 2];
                percentile99 = trips[(int) ((long) count * 99 / 100)];
            }
            payload.release();
            done.complete(sent + " " + nanoseconds + " " + median + " " + percentile99);
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            fail(new EOFException("The server ended the connection."));
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            fail(cause);
            context.close();
        }

        private void fail(Throwable cause) {
            if (done != null) {
                done.completeExceptionally(cause);
            }
        }
    }
}
