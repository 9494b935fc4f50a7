package import Lifeline
package import LifelineCore

/// A connection of a simulated session: bytes in two directions, which come in pieces of any size, and frames of those.
///
/// Nothing moves by itself. Who simulates takes bytes to their side, with `deliver`, and lets a direction die, with
/// `lose`: what stands on the way may still come up to any byte, and what is written afterwards gets nowhere. Neither
/// side is told.
package final class SimulatedSessionLink {
    package typealias Frame = SessionFrame<SessionPayload>

    /// One of its ends.
    package enum Side: Int, Sendable, CaseIterable {
        case client, server

        package var other: Side { self == .client ? .server : .client }
    }

    /// What is under way to a side.
    private struct Direction {
        var bytes: [UInt8] = []
        /// What stands before it in `bytes` has come.
        var head = 0
        /// Bytes that take up room, and of those only so many will come; nil: all.
        var arrivingByteCount: Int?
        var deliveredByteCount = 0
        /// Whether its writer has ended it in order.
        var isEnded = false
        /// Whether it takes nothing more from its writer, who is told so.
        var isRefusing = false
        var assembler: FrameAssembler

        var waitingByteCount: Int { bytes.count - head }
        var deliverableByteCount: Int { min(waitingByteCount, arrivingByteCount ?? .max) }
    }

    /// Its number: ascending.
    package let id: UInt64
    /// Bytes that a direction has room for. What was begun is written, so that it takes a frame more.
    package let capacity: Int
    private var toClient: Direction
    private var toServer: Direction

    /// - Parameters:
    ///   - capacity: bytes that may be under way in each direction before its writer has to wait.
    ///   - frameLimits: how long a frame may be that the client takes, and the server.
    package init(id: UInt64, capacity: Int, frameLimits: (client: Int, server: Int)) {
        self.id = id
        self.capacity = capacity
        toClient = Direction(assembler: FrameAssembler(decoder: FrameDecoder(maximumFrameLength: frameLimits.client)))
        toServer = Direction(assembler: FrameAssembler(decoder: FrameDecoder(maximumFrameLength: frameLimits.server)))
    }

    private subscript(side: Side) -> Direction {
        get { side == .client ? toClient : toServer }
        _modify { if side == .client { yield &toClient } else { yield &toServer } }
    }

    /// Bytes that will come to a side, as far as it was decided.
    package func deliverableByteCount(to side: Side) -> Int { self[side].deliverableByteCount }
    /// Bytes that came to a side.
    package func deliveredByteCount(to side: Side) -> Int { self[side].deliveredByteCount }
    /// Bytes that are under way to a side, or lost and still taking up their writer's room.
    package func waitingByteCount(to side: Side) -> Int { self[side].waitingByteCount }
    /// Whether what is written to a side gets nowhere.
    package func isLost(to side: Side) -> Bool { self[side].arrivingByteCount != nil }
    /// Whether a side can write nothing more, and is told so when it tries.
    package func refuses(from side: Side) -> Bool { self[side.other].isRefusing }
    /// Whether everything came to a side that will, and its writer has said that this was all.
    package func isAtEnd(at side: Side) -> Bool {
        self[side].isEnded && !isLost(to: side) && self[side].waitingByteCount == 0
    }
    /// Whether the bytes that came to a side end within a frame.
    package func isWithinFrame(at side: Side) -> Bool {
        do { try self[side].assembler.finish() } catch { return error.code == .truncatedFrame }
        return false
    }
    /// Whether a side may write.
    package func hasRoom(from side: Side) -> Bool {
        !self[side.other].isEnded && self[side.other].waitingByteCount < capacity
    }

    /// Appends what a side writes.
    package func write(_ frame: Frame, _ details: SessionOpeningDetails, from side: Side, now: MonotonicTime) {
        frame.append(to: &self[side.other].bytes, details, now: now)
    }

    /// A side writes nothing more. What it wrote still comes.
    package func end(from side: Side) {
        self[side.other].isEnded = true
    }

    /// From now on a side can write nothing more, and is told so when it tries.
    package func refuse(from side: Side) {
        self[side.other].isRefusing = true
    }

    /// From now on only so many bytes of what is under way come to a side.
    package func lose(to side: Side, after byteCount: Int = 0) {
        self[side].arrivingByteCount = min(byteCount, self[side].deliverableByteCount)
    }

    /// Takes bytes to a side, at most so many. Returns what they complete; after a violation comes nothing more.
    package func deliver(to side: Side, atMost byteCount: Int = .max, now: MonotonicTime) -> [Result<
        Frame, SessionViolation
    >] {
        let count = min(byteCount, self[side].deliverableByteCount)
        guard count > 0 else { return [] }
        var sink = Sink(now: now)
        let head = self[side].head
        self[side].head += count
        self[side].deliveredByteCount += count
        self[side].arrivingByteCount = self[side].arrivingByteCount.map { $0 - count }
        do {
            try sink.take(self[side].bytes[head..<head + count], into: &self[side].assembler)
        } catch {
            sink.frames.append(.failure(.undecodable("\(error)")))
        }
        if self[side].head == self[side].bytes.count {
            self[side].bytes.removeAll(keepingCapacity: true)
            self[side].head = 0
        }
        return sink.frames
    }

    /// Reads frames as they are completed.
    private struct Sink: FrameSink {
        let now: MonotonicTime
        var frames: [Result<Frame, SessionViolation>] = []

        mutating func receive(frame: UnsafeRawBufferPointer) {
            let now = now
            frames.append(Result { () throws(SessionViolation) in try Frame(decoding: frame, now: now) })
        }

        mutating func take(_ bytes: ArraySlice<UInt8>, into assembler: inout FrameAssembler) throws(FramingError) {
            do {
                try bytes.withUnsafeBytes { try assembler.receive($0, into: &self) }
            } catch let error as FramingError {
                throw error
            } catch {
                // The sink throws nothing.
            }
        }
    }
}
