package import LifelineCore
internal import LifelineRuntime
internal import NIOConcurrencyHelpers
package import NIOCore

/// A frame's place in the line while it waits to be accepted.
package struct PendingSend: Sendable, Hashable {
    let id: UInt64
}

/// The outgoing bytes of one connection, filled on the senders' threads and written on the loop.
///
/// At most one write is under way, so that frames sent meanwhile go out in the next one, and the number of bytes that
/// the kernel has not taken is known. A frame is accepted while that number is below the high-water mark. The memory
/// held is at most the mark plus one offer, and one offer for each waiting send. The buffer is given back after each
/// write.
package final class OutboundQueue: Sendable {
    private struct WaitingSend {
        /// Nil when the send only waits for room.
        var frames: [UInt8]?
        var frameCount = 0
        /// Nil before the task waits.
        var waiter: Waiter?
    }

    private struct State {
        var machine: OutboundStateMachine
        /// Nil when delivery is not tracked.
        var ledger: DeliveryLedger?
        var buffer = ByteBuffer()
        /// The number of frames in `buffer`.
        var frameCount = 0
        /// The number of senders' frames accepted since the beginning.
        var acceptedFrameCount = 0
        /// The sends that wait in line, until they are accepted or refused.
        var waiting: [UInt64: WaitingSend] = [:]
        /// The reasons for refused sends, until their tasks get them.
        var refusals: [UInt64: any Error] = [:]
        /// The reason why no more frames are accepted, if this side did not cause it.
        var finishReason: ConnectionError?

        /// Appends the bytes of accepted frames.
        @inline(__always) mutating func append(_ frames: UnsafeRawBufferPointer, count: Int) {
            buffer.append(frames)
            if count == 1 { return accepted(frameOf: frames.count) }
            frameCount += count
            acceptedFrameCount += count
            guard ledger != nil else { return }
            var rest = FrameRun(unchecked: frames, count: count).makeIterator()
            while let byteCount = rest.skip() { ledger?.frameAccepted(byteCount: byteCount) }
        }

        /// Appends the bytes of accepted frames; takes the buffer itself when no other bytes wait.
        mutating func append(_ frames: inout ByteBuffer) {
            let byteCount = frames.readableBytes
            if buffer.readableBytes == 0 { swap(&buffer, &frames) } else { buffer.writeBuffer(&frames) }
            accepted(frameOf: byteCount)
        }

        @inline(__always) mutating func accepted(frameOf byteCount: Int) {
            frameCount += 1
            acceptedFrameCount += 1
            ledger?.frameAccepted(byteCount: byteCount)
        }

        /// The reason why frames are refused.
        var refusal: ConnectionError { machine.closeReason ?? finishReason ?? .sendingFinished }

        /// Drops waiting sends. Returns the tasks to resume.
        mutating func refuse(_ ids: [UInt64], _ reason: any Error) -> [Waiter] {
            ids.compactMap { id in
                guard let send = waiting.removeValue(forKey: id) else { return nil }
                refusals[id] = reason
                return send.waiter
            }
        }

        /// Keeps the waiter of a send while it waits.
        mutating func park(_ waiter: Waiter, _ id: UInt64) -> Bool {
            waiting[id]?.waiter = waiter
            return waiting[id] != nil
        }

        /// Refuses a send whose task was cancelled, if it still waits.
        mutating func cancel(_ id: UInt64) -> Waiter? {
            machine.cancelled(id: id) ? refuse([id], CancellationError()).first : nil
        }
    }

    private let state: NIOLockedValueBox<State>

    package init(marks: WaterMarks, tracksDelivery: Bool = false) {
        let ledger = tracksDelivery ? DeliveryLedger() : nil
        state = NIOLockedValueBox(State(machine: OutboundStateMachine(marks: marks), ledger: ledger))
    }

    // MARK: The senders' side

    /// The result of offering a frame.
    package enum Offer: Equatable {
        /// It will be written.
        case accepted(scheduleFlush: Bool)
        /// It waits; see `wait(for:)`.
        case pending(PendingSend)
    }

    /// Offers a copy of the bytes of whole frames, which are accepted or refused together.
    ///
    /// - Parameter count: the number of frames. With one, the bytes are not checked.
    package func offer(_ frames: UnsafeRawBufferPointer, count: Int = 1) throws(ConnectionError) -> Offer {
        let result: Result<Offer, ConnectionError> = state.withLockedValue { state in
            switch state.machine.offered(byteCount: frames.count) {
            case .accept(let scheduleFlush):
                state.append(frames, count: count)
                return .success(.accepted(scheduleFlush: scheduleFlush))
            case .wait(let id):
                state.waiting[id] = WaitingSend(frames: Array(frames), frameCount: count)
                return .success(.pending(PendingSend(id: id)))
            case .refuse:
                return .failure(state.refusal)
            }
        }
        return try result.get()
    }

    /// Offers whole frames that `body` writes; does nothing if it writes none. See `offer(_:count:)`.
    package func offer(writing body: (inout OutboundBytes) -> Void) throws(ConnectionError) -> Offer {
        let spare = SpareBuffer.forWriting
        var bytes = OutboundBytes(buffer: spare.take(minimumCapacity: OutboundBytes.smallestCapacity))
        body(&bytes)
        defer { spare.giveBack(bytes.buffer) }
        if bytes.isEmpty { return .accepted(scheduleFlush: false) }
        let result: Result<Offer, ConnectionError> = state.withLockedValue { state in
            switch state.machine.offered(byteCount: bytes.count) {
            case .accept(let scheduleFlush):
                state.append(&bytes.buffer)
                return .success(.accepted(scheduleFlush: scheduleFlush))
            case .wait(let id):
                state.waiting[id] = WaitingSend(frames: Array(bytes.buffer.readableBytesView), frameCount: 1)
                return .success(.pending(PendingSend(id: id)))
            case .refuse:
                return .failure(state.refusal)
            }
        }
        return try result.get()
    }

    /// Accepts a copy of a frame's bytes, which may come in two parts, if there is room now.
    ///
    /// - Returns: Whether to schedule a flush; nil when there is no room.
    package func offerNow(
        _ head: UnsafeRawBufferPointer,
        _ rest: UnsafeRawBufferPointer
    ) throws(ConnectionError) -> Bool? {
        let byteCount = head.count + rest.count
        let result: Result<Bool?, ConnectionError> = state.withLockedValue { state in
            switch state.machine.offeredNow(byteCount: byteCount) {
            case .accept(let scheduleFlush):
                state.buffer.append(head)
                state.buffer.append(rest)
                state.accepted(frameOf: byteCount)
                return .success(scheduleFlush)
            case .noRoom: return .success(nil)
            case .refuse: return .failure(state.refusal)
            }
        }
        return try result.get()
    }

    /// Waits until there is room for a frame. Throws as `wait(for:)` does.
    package nonisolated(nonsending) func waitForRoom() async throws {
        let result: Result<PendingSend?, ConnectionError> = state.withLockedValue { state in
            switch state.machine.roomRequested() {
            case .accept: return .success(nil)
            case .wait(let id):
                state.waiting[id] = WaitingSend()
                return .success(PendingSend(id: id))
            case .refuse: return .failure(state.refusal)
            }
        }
        if let pending = try result.get() { try await wait(for: pending) }
    }

    /// Waits until a frame is accepted.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first: then the frame is dropped. `ConnectionError`
    ///   when the connection ends first.
    package nonisolated(nonsending) func wait(for pending: PendingSend) async throws {
        let id = pending.id
        await state.wait {
            $0.park($1, id)
        } withdraw: {
            $0.cancel(id)
        }
        let refusal = state.withLockedValue { state in
            // A send that still waits was cancelled before its waiter was kept.
            _ = state.cancel(id)
            return state.refusals.removeValue(forKey: id)
        }
        if let refusal { throw refusal }
    }

    /// Accepts no more frames, because this side closes the connection. Fails waiting ones with `reason`, unless this
    /// side was told before to end after them. Returns whether to schedule a flush.
    package func finish(closing reason: ConnectionError) -> Bool {
        finish(refusing: reason) { $0.closeRequested() }
    }

    /// Accepts no more frames; see `OutboundStateMachine.finishRequested`. Returns whether to schedule a flush.
    package func finish(refusingWaiting reason: ConnectionError? = nil) -> Bool {
        finish(refusing: reason) { $0.finishRequested(refusingWaiting: reason != nil) }
    }

    private func finish(
        refusing reason: ConnectionError?,
        _ request: (inout OutboundStateMachine) -> OutboundStateMachine.FinishAction
    ) -> Bool {
        let (scheduleFlush, refused) = state.withLockedValue { state in
            let action = request(&state.machine)
            return (action.scheduleFlush, reason.map { state.refuse(action.refused, $0) } ?? [])
        }
        for waiter in refused { waiter.resume() }
        return scheduleFlush
    }

    /// Fails waiting and later sends with `reason`, because the peer takes no more. Returns whether to schedule a
    /// flush.
    package func finish(refusing reason: ConnectionError) -> Bool {
        state.withLockedValue { state in
            if state.machine.isOpen { state.finishReason = reason }
        }
        return finish(refusingWaiting: reason)
    }

    // MARK: The loop's side

    /// Appends the connection's own frames, which do not wait for room: the caller bounds them. Returns whether to
    /// flush; nil when nothing more may be written.
    package func append(_ frames: [UInt8]) -> Bool? {
        state.withLockedValue { state in
            let scheduleFlush = state.machine.appended(byteCount: frames.count)
            if scheduleFlush != nil {
                state.buffer.writeBytes(frames)
                state.ledger?.uncountedBytesAccepted(frames.count)
            }
            return scheduleFlush
        }
    }

    /// Appends whole frames of replies, written on the loop; takes the buffer itself when no other bytes wait. They do
    /// not wait for room either. Returns whether to flush; nil when nothing more may be written.
    ///
    /// - Parameter replies: is empty afterwards, if the replies were taken.
    package func append(_ replies: inout ByteBuffer, frameCount: Int) -> Bool? {
        state.withLockedValue { state in
            let byteCount = replies.readableBytes
            let scheduleFlush = state.machine.replied(byteCount: byteCount)
            if scheduleFlush != nil {
                if state.buffer.readableBytes == 0 {
                    swap(&state.buffer, &replies)
                } else {
                    state.buffer.writeBuffer(&replies)
                }
                state.frameCount += frameCount
                state.ledger?.uncountedBytesAccepted(byteCount)
            }
            return scheduleFlush
        }
    }

    /// The step on the loop when a flush is due.
    package enum Flush {
        /// Write these bytes. `isFinishing`: whether the user has no more to send.
        case write(ByteBuffer, frameCount: Int, isFinishing: Bool)
        case endOutput
        case none
    }

    /// Removes and returns the bytes to write now.
    package func takeForFlush() -> Flush {
        state.withLockedValue { state in
            switch state.machine.flushStarted() {
            case .none: return .none
            case .endOutput: return .endOutput
            case .write:
                var buffer = ByteBuffer()
                swap(&buffer, &state.buffer)
                defer { state.frameCount = 0 }
                return .write(buffer, frameCount: state.frameCount, isFinishing: !state.machine.isOpen)
            }
        }
    }

    /// Notes that the kernel has taken the write. Accepts waiting sends, and returns whether to flush again.
    package func completeWrite() -> Bool {
        let (scheduleFlush, admitted) = state.withLockedValue { state in
            let action = state.machine.written()
            let admitted = action.admitted.compactMap { id -> Waiter? in
                guard let send = state.waiting.removeValue(forKey: id) else { return nil }
                send.frames?.withUnsafeBytes { state.append($0, count: send.frameCount) }
                return send.waiter
            }
            return (action.scheduleFlush, admitted)
        }
        for waiter in admitted { waiter.resume() }
        return scheduleFlush
    }

    /// Fails waiting and later sends with `reason`, because the connection has ended. Returns the number of lost
    /// accepted bytes.
    package func close(_ reason: ConnectionError) -> Int {
        let (unwritten, refused) = state.withLockedValue { state in
            let action = state.machine.closed(reason)
            state.buffer = ByteBuffer()
            return (action.unwrittenByteCount, state.refuse(action.refused, reason))
        }
        for waiter in refused { waiter.resume() }
        return unwritten
    }

    /// Bytes accepted and not yet taken by the kernel.
    package var unwrittenByteCount: Int { state.withLockedValue { $0.machine.unwrittenByteCount } }

    // MARK: Delivery

    /// The number of senders' frames accepted until now.
    package var acceptedFrameCount: Int { state.withLockedValue { $0.acceptedFrameCount } }

    /// Stops tracking, because arrivals cannot be known: forgets the frames in flight.
    package func stopTracking() {
        state.withLockedValue { $0.ledger = nil }
    }

    /// Whether enough frames are in flight to make it worth asking which of them have arrived.
    package var asksForAcknowledgement: Bool { state.withLockedValue { $0.ledger?.needsTrim ?? false } }

    /// Notes the number of bytes that the peer has acknowledged in all. Returns the number of accepted frames that it
    /// has not acknowledged, if that is tracked.
    @discardableResult
    package func acknowledge(byteCount: UInt64) -> Int? {
        state.withLockedValue { state in
            state.ledger?.bytesAcknowledged(total: byteCount)
            return state.ledger?.unacknowledgedFrameCount
        }
    }
}

/// Whole frames, prefixes included, that are collected for a connection.
package struct OutboundBytes: ~Copyable {
    /// Enough for a few small frames, if no larger buffer is spare.
    fileprivate static let smallestCapacity = 512

    fileprivate var buffer: ByteBuffer

    package var count: Int { buffer.readableBytes }
    package var isEmpty: Bool { buffer.readableBytes == 0 }

    package mutating func append(_ frames: UnsafeRawBufferPointer) { buffer.append(frames) }
}

extension ByteBuffer {
    /// Does the same as `writeBytes`, which runs ten times as many instructions for a few bytes (439, counted).
    @inline(__always) fileprivate mutating func append(_ bytes: UnsafeRawBufferPointer) {
        writeWithUnsafeMutableBytes(minimumWritableBytes: bytes.count) { memory in
            memory.copyMemory(from: bytes)
            return bytes.count
        }
    }
}
