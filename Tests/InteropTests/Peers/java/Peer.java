import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import sample.chat.v1.Chat.ChatMessage;

/** The Java peer, with the library's own delimited streams: see ../README.md for what its commands do. */
public final class Peer {
    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "make" -> writeAll(corpus(arguments[1]), System.out);
            case "check" -> check(readAll(System.in), corpus(arguments[1]));
            case "echo-server" -> echoServer();
            case "echo-client" -> echoClient(Integer.parseInt(arguments[1]), corpus(arguments[2]));
            default -> throw new IllegalArgumentException("unknown command " + arguments[0]);
        }
    }

    static List<ChatMessage> corpus(String name) throws IOException {
        Path file = Path.of(System.getenv("LIFELINE_CORPUS_DIR"), name + ".delimited");
        try (InputStream stream = new BufferedInputStream(Files.newInputStream(file))) {
            return readAll(stream);
        }
    }

    static List<ChatMessage> readAll(InputStream stream) throws IOException {
        List<ChatMessage> messages = new ArrayList<>();
        for (ChatMessage message; (message = ChatMessage.parseDelimitedFrom(stream)) != null; ) {
            messages.add(message);
        }
        return messages;
    }

    private static void writeAll(List<ChatMessage> messages, OutputStream output) throws IOException {
        OutputStream buffered = new BufferedOutputStream(output);
        for (ChatMessage message : messages) {
            message.writeDelimitedTo(buffered);
        }
        buffered.flush();
    }

    /** Ends the process with status 1 at the first difference. Java's equals takes NaNs for equal, as is needed here. */
    static void check(List<ChatMessage> received, List<ChatMessage> expected) {
        if (received.size() != expected.size()) {
            fail(received.size() + " messages came, " + expected.size() + " were expected");
        }
        for (int index = 0; index < expected.size(); index++) {
            if (!received.get(index).equals(expected.get(index))) {
                fail("message " + index + " differs:\n" + received.get(index) + "\nwas expected to be\n"
                        + expected.get(index));
            }
        }
    }

    private static void fail(String problem) {
        System.err.println(problem.substring(0, Math.min(problem.length(), 4000)));
        System.exit(1);
    }

    private static void echoServer() throws IOException {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            System.out.println(server.getLocalPort());
            try (Socket socket = server.accept()) {
                InputStream input = new BufferedInputStream(socket.getInputStream());
                OutputStream output = new BufferedOutputStream(socket.getOutputStream());
                for (ChatMessage message; (message = ChatMessage.parseDelimitedFrom(input)) != null; ) {
                    message.writeDelimitedTo(output);
                    output.flush();
                }
            }
        }
    }

    private static void echoClient(int port, List<ChatMessage> messages) throws Exception {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            InputStream input = new BufferedInputStream(socket.getInputStream());
            CompletableFuture<List<ChatMessage>> received = CompletableFuture.supplyAsync(() -> {
                try {
                    return readAll(input);
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            });
            writeAll(messages, socket.getOutputStream());
            socket.shutdownOutput();
            check(received.get(), messages);
        }
    }
}
