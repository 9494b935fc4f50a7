internal import NIOConcurrencyHelpers
internal import NIOCore

/// The sockets of one attempt to connect: one for each address that was tried, two of which may be connecting at a
/// time.
///
/// What NIO has begun it would otherwise bring to its end, whoever waits for it: a peer would see connections that
/// nobody wants any more, for as long as the connect timeout lasts.
final class ConnectAttempt: Sendable {
    private struct State {
        var channels: [any Channel] = []
        var isGivenUp = false
        var isClaimed = false
    }

    private let state = NIOLockedValueBox(State())

    /// A socket was made, and is not connecting yet.
    ///
    /// - Throws: `CancellationError` when the attempt was given up: it is to try no further address.
    func begin(_ channel: any Channel) throws {
        let isGivenUp = state.withLockedValue { state in
            if !state.isGivenUp { state.channels.append(channel) }
            return state.isGivenUp
        }
        if isGivenUp { throw CancellationError() }
    }

    /// A socket is connected. True for the first one, which is the connection; NIO closes any other.
    func claim() -> Bool {
        state.withLockedValue { state in
            defer { state.isClaimed = true }
            return !state.isClaimed
        }
    }

    /// Closes what was begun, connected or not, and lets nothing else begin. Returns when there is no socket any more.
    ///
    /// A name look-up goes on in its thread, which nothing can stop, but comes to nothing.
    func giveUp() async {
        let channels = state.withLockedValue { state in
            state.isGivenUp = true
            return state.channels
        }
        for channel in channels {
            // Layers would wait for the peer; without layers, this is nothing.
            channel.triggerUserOutboundEvent(SocketCut(), promise: nil)
            channel.close(promise: nil)
        }
        for channel in channels { try? await channel.closeFuture.get() }
    }
}
