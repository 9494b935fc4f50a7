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
/// At most one write is under way, so that what is sent meanwhile goes out in the next one, and the bytes not taken by
/// the kernel are known. A frame is accepted while those are below the high-water mark; the memory held is at most that
/// plus one offer, and one offer for each send that waits. The buffer is given back with each write.
package final class OutboundQueue: Sendable {
    private struct WaitingSend {
        /// Nil when it is only room that is waited for.
        var frames: [UInt8]?
        var frameCount = 0
        /// Nil before its task waits.
        var waiter: Waiter?
    }

    private struct State {
        var machine: OutboundStateMachine
        /// Nil when delivery is not tracked.
        var ledger: DeliveryLedger?
        var buffer = ByteBuffer()
        /// Frames in `buffer`.
        var frameCount = 0
        /// Frames of senders that were accepted, from the beginning.
        var acceptedFrameCount = 0
        /// Sends that wait in line. Gone once accepted or refused.
        var waiting: [UInt64: WaitingSend] = [:]
        /// Why sends were refused, until their tasks learn of it.
        var refusals: [UInt64: any Error] = [:]
        /// Why no more frames are taken, when that is not this side's doing.
        var finishReason: ConnectionError?

        /// Takes the bytes of accepted frames.
        @inline(__always) mutating func append(_ frames: UnsafeRawBufferPointer, count: Int) {
            buffer.append(frames)
            if count == 1 { return accepted(frameOf: frames.count) }
            frameCount += count
            acceptedFrameCount += count
            guard ledger != nil else { return }
            var rest = FrameRun(unchecked: frames, count: count).makeIterator()
            while let byteCount = rest.skip() { ledger?.frameAccepted(byteCount: byteCount) }
        }

        /// Takes the bytes of accepted frames: the buffer itself, when no other bytes wait.
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

        /// Why frames are refused.
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

    /// What became of an offered frame.
    package enum Offer: Equatable {
        /// It will be written.
        case accepted(scheduleFlush: Bool)
        /// It waits; see `wait(for:)`.
        case pending(PendingSend)
    }

    /// Takes a copy of the bytes of whole frames, which are accepted, or refused, together.
    ///
    /// - Parameter count: how many there are. With one, the bytes are not looked at.
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

    /// Takes whole frames that `body` writes, and does nothing if it writes none. See `offer(_:count:)`.
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

    /// Takes a copy of a frame's bytes, which may come in two parts, if there is room for it now.
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
    /// - Throws: `CancellationError` when the task is cancelled first; the frame is dropped then. `ConnectionError`
    ///   when the connection ends first.
    package nonisolated(nonsending) func wait(for pending: PendingSend) async throws {
        let id = pending.id
        await state.wait {
            $0.park($1, id)
        } withdraw: {
            $0.cancel(id)
        }
        let refusal = state.withLockedValue { state in
            // One that still waits was cancelled before its waiter was kept.
            _ = state.cancel(id)
            return state.refusals.removeValue(forKey: id)
        }
        if let refusal { throw refusal }
    }

    /// Takes no more frames, as this side closes the connection: fails those that wait with `reason`, unless this side
    /// was told before to end behind them. Tells whether to schedule a flush.
    package func finish(closing reason: ConnectionError) -> Bool {
        finish(refusing: reason) { $0.closeRequested() }
    }

    /// Takes no more frames; see `OutboundStateMachine.finishRequested`. Tells whether to schedule a flush.
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

    /// The peer takes no more: fails waiting and later sends with `reason`. Tells whether to schedule a flush.
    package func finish(refusing reason: ConnectionError) -> Bool {
        state.withLockedValue { state in
            if state.machine.isOpen { state.finishReason = reason }
        }
        return finish(refusingWaiting: reason)
    }

    // MARK: The loop's side

    /// Takes frames of the connection's own, which do not wait for room: whoever calls it bounds them. Tells whether to
    /// flush; nil when nothing may be written any more.
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

    /// Takes whole frames that answer what has come, written on the loop: the buffer itself, when no other bytes wait.
    /// They do not wait for room either. Tells whether to flush; nil when nothing may be written any more.
    ///
    /// - Parameter replies: has nothing to be read any more when they were taken.
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

    /// What to do on the loop when its turn to flush has come.
    package enum Flush {
        /// `isFinishing`: the user has no more to send.
        case write(ByteBuffer, frameCount: Int, isFinishing: Bool)
        case endOutput
        case none
    }

    /// Takes what is to be written now.
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

    /// The kernel has taken the write. Lets waiting sends in and tells whether to flush again.
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

    /// The connection is gone: fails waiting and later sends with `reason`. Returns how many accepted bytes are lost.
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

    /// How many frames of senders were accepted until now.
    package var acceptedFrameCount: Int { state.withLockedValue { $0.acceptedFrameCount } }

    /// Nobody can tell what arrives: forgets the frames in flight.
    package func stopTracking() {
        state.withLockedValue { $0.ledger = nil }
    }

    /// Whether so many frames are in flight that it is worth asking which of them have arrived.
    package var asksForAcknowledgement: Bool { state.withLockedValue { $0.ledger?.needsTrim ?? false } }

    /// The peer has acknowledged so many bytes in all. Returns how many accepted frames it has not, where that is
    /// tracked.
    @discardableResult
    package func acknowledge(byteCount: UInt64) -> Int? {
        state.withLockedValue { state in
            state.ledger?.bytesAcknowledged(total: byteCount)
            return state.ledger?.unacknowledgedFrameCount
        }
    }
}

/// Whole frames, prefixes included, that are put together for a connection.
package struct OutboundBytes: ~Copyable {
    /// Enough for a few small frames, where no larger buffer is spare.
    fileprivate static let smallestCapacity = 512

    fileprivate var buffer: ByteBuffer

    package var count: Int { buffer.readableBytes }
    package var isEmpty: Bool { buffer.readableBytes == 0 }

    package mutating func append(_ frames: UnsafeRawBufferPointer) { buffer.append(frames) }
}

extension ByteBuffer {
    /// The same as `writeBytes`, which runs ten times as many instructions for a few bytes (439, counted).
    @inline(__always) fileprivate mutating func append(_ bytes: UnsafeRawBufferPointer) {
        writeWithUnsafeMutableBytes(minimumWritableBytes: bytes.count) { memory in
            memory.copyMemory(from: bytes)
            return bytes.count
        }
    }
}
