/// The decisions about one connection's life: which direction is open, when to close, why it failed. It uses no
/// channel, bytes or clock.
package struct ConnectionStateMachine {
    private enum Input {
        /// Received bytes go to the receiver.
        case receiving
        /// The receiver's input has ended; received bytes are dropped.
        case discarding
        /// The peer has ended its side.
        case ended
    }

    private enum Output {
        case open
        /// This side has ended.
        case ended
    }

    private enum State {
        /// Can go to: closing, closed.
        case open(Input, Output)
        /// A graceful close: queued bytes are written, received ones are dropped, until both sides have ended. Can go
        /// to: closed.
        case closing(Input, Output)
        /// The socket is closed. Can go to: no other state.
        case closed
    }

    private var state = State.open(.receiving, .open)
    /// The first reason why the connection failed.
    package private(set) var failure: ConnectionError?
    /// Whether it failed while it was in use, before a graceful close was requested.
    package private(set) var failedInUse = false
    /// False when a graceful close stopped waiting for the peer's end.
    package private(set) var peerEndedInTime = true
    /// Whether both sides had ended when the socket was closed, so that bytes in the kernel may still arrive.
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

    /// The handling of received bytes.
    package enum BytesAction: Equatable {
        /// Find the frames in them.
        case parse
        /// Find the pings in them, and drop the rest.
        case answer
        /// Drop them.
        case discard
    }

    /// Returns how to handle received bytes.
    package func receivedBytes() -> BytesAction {
        switch state {
        case _ where failure != nil: .discard
        case .open(.receiving, _): .parse
        case .open(.discarding, .open): .answer
        case .open, .closing, .closed: .discard
        }
    }

    /// The side that ended the input.
    package enum InputEnd: Equatable {
        /// The peer, which must not end inside a frame.
        case byPeer
        /// This side, which may end anywhere.
        case byUs
    }

    /// The steps when a direction has ended or should end.
    package struct EndAction: Equatable {
        /// End the receiver's input: with `failure`, or because a side ended it.
        package var finishInput: InputEnd?
        /// Close the socket: both directions have ended.
        package var closeChannel = false
    }

    /// Notes that the peer ended its side.
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

    /// Notes that this side was ended: the kernel has everything accepted before.
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

    /// Notes that the owner wants no more input.
    package mutating func stopReceivingRequested() -> EndAction {
        guard case .open(.receiving, let output) = state else { return EndAction() }
        state = .open(.discarding, output)
        return EndAction(finishInput: .byUs)
    }

    /// The steps when the owner requests a graceful close.
    package enum CloseAction: Equatable {
        /// Finish the output, start the timer, and run the action for the end of input.
        case begin(EndAction)
        /// Nothing: a close is under way or done.
        case none
    }

    /// Begins a graceful close, which the owner requests.
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

    /// The steps when the close timer ends.
    package enum TimerAction: Equatable {
        /// Give it the same time again.
        case wait
        /// Close the socket without the peer's end.
        case closeChannel
        /// Nothing: the socket is closed.
        case none
    }

    /// Notes that the close timer ended. `madeProgress`: whether bytes were written since it was started.
    package mutating func closeTimerEnded(madeProgress: Bool) -> TimerAction {
        guard case .closing(_, let output) = state else { return .none }
        if output == .ended {
            peerEndedInTime = false
            return .closeChannel
        }
        if madeProgress { return .wait }
        return failed(.peerDoesNotRead) ? .closeChannel : .none
    }

    /// Notes a failure, or an abort by the owner. Returns whether to close the socket: only for the first reason.
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

    /// Notes that the socket is closed. Returns whether the receiver's input ends with that. From then on `failure` is
    /// final.
    package mutating func becameInactive() -> EndAction {
        switch state {
        case .closed:
            return EndAction()
        case .open(let input, let output):
            // If this side has ended, the peer's end closes the socket at once. Otherwise the connection was cut.
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
        ConnectionError(code: .closedLocally, message: "The peer stopped reading, so closing was given up.")
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
                "The server has ServerConfiguration.maximumConnections; this one was closed, as its peer was silent."
        )
    }

    package static var closedLocally: ConnectionError {
        ConnectionError(code: .closedLocally, message: "The connection was closed on this side.")
    }
}
