internal import NIOConcurrencyHelpers
internal import NIOCore

/// The sockets of one attempt to connect: one for each address that was tried. Two may be connecting at a time.
///
/// Without this, NIO would finish every begun connection, even when nobody waits for it: a peer would see unwanted
/// connections for as long as the connect timeout lasts.
final class ConnectAttempt: Sendable {
    private struct State {
        var channels: [any Channel] = []
        var isGivenUp = false
        var isClaimed = false
    }

    private let state = NIOLockedValueBox(State())

    /// Adds a socket that is not connecting yet.
    ///
    /// - Throws: `CancellationError` when the attempt was given up: then it must try no further address.
    func begin(_ channel: any Channel) throws {
        let isGivenUp = state.withLockedValue { state in
            if !state.isGivenUp { state.channels.append(channel) }
            return state.isGivenUp
        }
        if isGivenUp { throw CancellationError() }
    }

    /// Notes that a socket is connected. Returns true for the first one, which is the connection; NIO closes the
    /// others.
    func claim() -> Bool {
        state.withLockedValue { state in
            defer { state.isClaimed = true }
            return !state.isClaimed
        }
    }

    /// Closes all begun sockets, connected or not, and lets no other begin. Returns when no socket is left.
    ///
    /// A name look-up goes on in its thread and cannot be stopped, but its result is ignored.
    func giveUp() async {
        let channels = state.withLockedValue { state in
            state.isGivenUp = true
            return state.channels
        }
        for channel in channels {
            // Layers would wait for the peer; without layers, this has no effect.
            channel.triggerUserOutboundEvent(SocketCut(), promise: nil)
            channel.close(promise: nil)
        }
        for channel in channels { try? await channel.closeFuture.get() }
    }
}
