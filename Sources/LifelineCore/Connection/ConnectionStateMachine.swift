/// The decisions over one connection's life: which direction is open, when to close, why it failed.
/// Knows no channel, no bytes and no clock.
package struct ConnectionStateMachine {
    private enum Input {
        /// What comes is for the receiver.
        case receiving
        /// The receiver's input has ended; what comes is dropped.
        case discarding
        /// The peer has ended its side.
        case ended
    }

    private enum Output {
        case open
        /// We have ended our side.
        case ended
    }

    private enum State {
        /// Can go to: closing, closed.
        case open(Input, Output)
        /// A graceful close: what is queued is written, what comes is dropped, until both sides have ended.
        /// Can go to: closed.
        case closing(Input, Output)
        /// There is no socket any more. Can go to: nothing.
        case closed
    }

    private var state = State.open(.receiving, .open)
    /// The first reason why the connection failed.
    package private(set) var failure: ConnectionError?
    /// Whether it failed while it was in use, before a graceful close was asked for.
    package private(set) var failedInUse = false
    /// False when a graceful close gave the peer's end up.
    package private(set) var peerEndedInTime = true
    /// Whether both sides had ended when the socket was closed, so that what the kernel still has may yet arrive.
    package private(set) var endedInOrder = false

    package init() {}

    /// Whether it is in use: not failed, and not being closed.
    package var isOpen: Bool {
        if case .open = state { failure == nil } else { false }
    }

    /// Whether a graceful close is under way.
    package var isClosing: Bool {
        if case .closing = state { failure == nil } else { false }
    }

    /// What to do with bytes.
    package enum BytesAction: Equatable {
        /// Find the frames in them.
        case parse
        /// Find the pings in them; the rest is for nobody.
        case answer
        /// Drop them.
        case discard
    }

    /// Bytes were received.
    package func receivedBytes() -> BytesAction {
        switch state {
        case _ where failure != nil: .discard
        case .open(.receiving, _): .parse
        case .open(.discarding, .open): .answer
        case .open, .closing, .closed: .discard
        }
    }

    /// Who ended the input.
    package enum InputEnd: Equatable {
        /// The peer, who must not do so inside a frame.
        case byPeer
        /// We, who may do so anywhere.
        case byUs
    }

    /// What to do when a direction has ended or shall end.
    package struct EndAction: Equatable {
        /// End the receiver's input: with `failure`, or because somebody ended it.
        package var finishInput: InputEnd?
        /// Close the socket: both directions have ended.
        package var closeChannel = false
    }

    /// The peer ended its side.
    package mutating func inputEnded() -> EndAction {
        switch state {
        case .open(let input, let output):
            state = .open(.ended, output)
            return EndAction(finishInput: input == .receiving ? .byPeer : nil, closeChannel: output == .ended)
        case .closing(_, let output):
            state = .closing(.ended, output)
            return EndAction(closeChannel: output == .ended)
        case .closed:
            return EndAction()
        }
    }

    /// Our side was ended: everything accepted before is with the kernel.
    package mutating func outputEnded() -> EndAction {
        switch state {
        case .open(let input, _):
            state = .open(input, .ended)
            return EndAction(closeChannel: input == .ended)
        case .closing(let input, _):
            state = .closing(input, .ended)
            return EndAction(closeChannel: input == .ended)
        case .closed:
            return EndAction()
        }
    }

    /// The owner wants no more input.
    package mutating func stopReceivingRequested() -> EndAction {
        guard case .open(.receiving, let output) = state else { return EndAction() }
        state = .open(.discarding, output)
        return EndAction(finishInput: .byUs)
    }

    /// What to do when the owner wants a graceful close.
    package enum CloseAction: Equatable {
        /// Finish the output, start the timer, and do what the end of input asks for.
        case begin(EndAction)
        /// It is under way or done.
        case none
    }

    /// The owner wants a graceful close.
    package mutating func closeRequested() -> CloseAction {
        guard case .open(let input, let output) = state else { return .none }
        state = .closing(input == .ended ? .ended : .discarding, output)
        return .begin(
            EndAction(
                finishInput: input == .receiving ? .byUs : nil,
                closeChannel: input == .ended && output == .ended
            )
        )
    }

    /// What to do when the close timer ends.
    package enum TimerAction: Equatable {
        /// Give it the same time again.
        case wait
        /// Close the socket without the peer's end.
        case closeChannel
        /// Nothing: it is closed.
        case none
    }

    /// The close timer ended. `madeProgress`: bytes were written since it was started.
    package mutating func closeTimerEnded(madeProgress: Bool) -> TimerAction {
        guard case .closing(_, let output) = state else { return .none }
        if output == .ended {
            peerEndedInTime = false
            return .closeChannel
        }
        if madeProgress { return .wait }
        return failed(.peerDoesNotRead) ? .closeChannel : .none
    }

    /// Something failed, or the owner aborts. Tells whether to close the socket, which is so for the first reason only.
    package mutating func failed(_ reason: ConnectionError) -> Bool {
        guard failure == nil else { return false }
        switch state {
        case .closed: return false
        case .closing: break
        case .open: failedInUse = true
        }
        failure = reason
        return true
    }

    /// The socket is closed. Tells whether the receiver's input ends with that; from then on `failure` is final.
    package mutating func becameInactive() -> EndAction {
        switch state {
        case .closed:
            return EndAction()
        case .open(let input, let output):
            // With our side ended the peer's end closes the socket at once. Otherwise somebody cut it.
            if output == .open { _ = failed(.connectionLost) }
            endedInOrder = failure == nil
            state = .closed
            return EndAction(finishInput: input == .receiving ? .byPeer : nil)
        case .closing(_, let output):
            endedInOrder = failure == nil && output == .ended && peerEndedInTime
            state = .closed
            return EndAction()
        }
    }
}

extension ConnectionError {
    package static var connectionLost: ConnectionError {
        ConnectionError(code: .closedByPeer, message: "The peer closed the connection. Connect again to go on.")
    }

    package static var peerDoesNotRead: ConnectionError {
        ConnectionError(code: .closedLocally, message: "The peer stopped reading; closing it was given up.")
    }

    package static var outOfMemoryBudget: ConnectionError {
        ConnectionError(
            code: .overloaded,
            message:
                "The server holds as much for its connections as ServerConfiguration.memoryBudget allows; this one was "
                + "idle for longest."
        )
    }

    package static var madeWay: ConnectionError {
        ConnectionError(
            code: .overloaded,
            message:
                "The server has ServerConfiguration.maximumConnections; this one made way, as its peer had said nothing."
        )
    }

    package static var closedLocally: ConnectionError {
        ConnectionError(code: .closedLocally, message: "The connection was closed on this side.")
    }
}
