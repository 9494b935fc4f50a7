package import Lifeline
internal import LifelineCore

/// A connection of a simulated session: bytes in two directions, which come in pieces of any size, and the frames that
/// they complete.
///
/// Nothing moves by itself. The simulation takes bytes to their side with `deliver`, and lets a direction die with
/// `lose`: bytes on their way may still come up to any one of them, and bytes that are written afterwards get nowhere.
/// Neither side is told.
package final class SimulatedSessionLink {
    /// A frame without its length in front, or the reason why the bytes are no frames from here on.
    package typealias Frame = Result<[UInt8], SessionViolation>

    /// One of its ends.
    package enum Side: Int, Sendable, CaseIterable {
        case client, server

        package var other: Side { self == .client ? .server : .client }
    }

    /// The bytes under way to a side.
    private struct Direction {
        var bytes: [UInt8] = []
        /// The bytes before it have come.
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
    /// Bytes that a direction has room for. A writer that finds room writes whole frames, and so may write more.
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
    /// Whether bytes that are written to a side get nowhere.
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

    /// Appends frames that a side writes, with their lengths in front.
    package func write(_ bytes: [UInt8], from side: Side) {
        self[side.other].bytes.append(contentsOf: bytes)
    }

    /// A side writes nothing more. What it wrote still comes.
    package func end(from side: Side) {
        self[side.other].isEnded = true
    }

    /// From now on a side can write nothing more, and is told so when it tries.
    package func refuse(from side: Side) {
        self[side.other].isRefusing = true
    }

    /// From now on only so many of the bytes that are under way come to a side.
    package func lose(to side: Side, after byteCount: Int = 0) {
        self[side].arrivingByteCount = min(byteCount, self[side].deliverableByteCount)
    }

    /// Takes bytes to a side, at most so many. Returns the frames that they complete; after a violation comes nothing
    /// more.
    package func deliver(to side: Side, atMost byteCount: Int = .max) -> [Frame] {
        let count = min(byteCount, self[side].deliverableByteCount)
        guard count > 0 else { return [] }
        var sink = Sink()
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

    /// Keeps frames as they are completed.
    private struct Sink: FrameSink {
        var frames: [Frame] = []

        mutating func receive(frame: UnsafeRawBufferPointer) { frames.append(.success([UInt8](frame))) }

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
