internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import LifelineProtos
internal import UnixSignals

/// A chat room, over WebSocket for browsers and over TCP for other programs.
@main struct WebChatServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "WebChatServer",
        abstract: "A chat room: what one says, all others hear.",
        discussion: """
            Messages are sample.chat.v1.ChatMessages, each behind its length as a varint. Runs until it is interrupted.

            Example:
              WebChatServer
              lifeline send --to tcp://127.0.0.1:7000 --proto Protos/sample/chat/v1/chat.proto -I Protos \
            --type ChatMessage --data '{"from": "Ada", "text": "Hello", "kind": "KIND_TEXT"}'
            """
    )

    @Option(help: ArgumentHelp("Where browsers connect. Port 0 takes a free one.", valueName: "url"))
    var webSocket = "ws://127.0.0.1:8080/chat"

    @Option(help: ArgumentHelp("Where other programs connect.", valueName: "url"))
    var plain = "tcp://127.0.0.1:7000"

    /// Any page in a browser may open a WebSocket to any server, even to one on the user's own machine.
    @Option(help: "An origin whose page may connect; may be given several times.")
    var origin = ["http://127.0.0.1:8000", "http://localhost:8000"]

    func run() async throws {
        let room = Room()
        try await withServer(
            listeningOn: Endpoint(webSocket),
            configuration: serverConfiguration,
            receiving: Sample_Chat_V1_ChatMessage.self,
            sending: RawMessage.self,
            handler: room.serve
        ) { browsers in
            try await withServer(
                listeningOn: Endpoint(plain),
                configuration: serverConfiguration,
                receiving: Sample_Chat_V1_ChatMessage.self,
                sending: RawMessage.self,
                handler: room.serve
            ) { programs in
                try await print("listening on \(browsers.boundEndpoint) and \(programs.boundEndpoint)")
                // Unbuffered.
                fflush(nil)
                for await _ in await UnixSignalsSequence(trapping: .sigint, .sigterm) { break }
            }
        }
    }

    private var serverConfiguration: ServerConfiguration {
        var configuration = ServerConfiguration()
        configuration.webSocket.origins = .only(Set(origin))
        configuration.connection.maximumFrameLength = Room.maximumMessageLength
        // With the memory of each member, the room takes less than 1 GiB.
        configuration.maximumConnections = 500
        // The room needs no longer grace period.
        configuration.shutdownGracePeriod = .seconds(2)
        configuration.connection.closeTimeout = .seconds(1)
        return configuration
    }
}
