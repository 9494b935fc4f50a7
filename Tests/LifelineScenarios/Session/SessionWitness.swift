internal import Lifeline
internal import LifelineTesting

/// Sees the frames of one end, and counts places and windows as the protocol's document says, beside the machine.
final class SessionWitness {
    /// The frames of a lane that this end has sent and that are not acknowledged.
    private struct Lane {
        var frames: [UInt64: [UInt8]] = [:]
        var next: UInt64 = 1
        /// Behind the highest place that was sent.
        var end: UInt64 = 1
        var cost = 0

        mutating func acknowledge(_ places: ClosedRange<UInt64>) {
            for place in frames.keys.filter({ places.contains($0) }) {
                cost -= SessionWitness.cost(frames.removeValue(forKey: place) ?? [])
            }
        }

        mutating func goOn(processed: UInt64, received: UInt64) {
            acknowledge(0...processed)
            next = received + 1
        }
    }

    private let window: SessionWindow
    private let fail: (String) -> Void
    private var ordinary = Lane()
    private var urgent = Lane()
    /// Frames that were sent again, and blanks in the places of others.
    private(set) var resentCount = 0
    private(set) var blankCount = 0
    /// Acknowledgements that named ranges, and credits that were granted.
    private(set) var rangeCount = 0
    private(set) var grantCount = 0

    /// - Parameter peer: the options of the peer.
    init(peer: SessionOptions, fail: @escaping (String) -> Void) {
        (window, self.fail) = (peer.inboundWindow, fail)
    }

    private static func cost(_ frame: [UInt8]) -> Int { frame.count + SessionSize.frameOverhead }

    func saw(_ traffic: SimulatedSessionEnd.Traffic) {
        switch traffic {
        case .opened(nil): (ordinary, urgent) = (Lane(), Lane())
        case .opened(let progress?):
            ordinary.goOn(processed: progress.processed, received: progress.received)
            urgent.goOn(processed: progress.urgent, received: progress.urgent)
        case .sent(let frame):
            guard let inner = try? InboundFrame(parsing: frame), let kind = inner.kind else {
                return fail("a frame is sent that is none")
            }
            switch kind.lane {
            case .ordinary?: send(frame, kind, in: &ordinary)
            case .urgent?: send(frame, kind, in: &urgent)
            case nil: if kind == .credit { grantCount += 1 }
            }
        case .received(let frame):
            guard let inner = try? InboundFrame(parsing: frame), inner.kind == .acknowledgement,
                let acknowledgement = try? Acknowledgement(parsing: inner.body)
            else { return }
            ordinary.acknowledge(0...acknowledgement.ordinary)
            for range in acknowledgement.ranges { ordinary.acknowledge(range) }
            urgent.acknowledge(0...acknowledgement.urgent)
            if !acknowledgement.ranges.isEmpty { rangeCount += 1 }
        }
    }

    private func send(_ bytes: UnsafeRawBufferPointer, _ kind: FrameKind, in lane: inout Lane) {
        let (place, frame) = (lane.next, [UInt8](bytes))
        lane.next += 1
        if kind == .blank { blankCount += 1 }
        if place < lane.end {
            resentCount += 1
            guard let earlier = lane.frames[place] else { return fail("the frame of place \(place) was acknowledged") }
            if !Self.isSame(frame, as: earlier, kind) { fail("another frame is sent at place \(place)") }
            lane.cost -= Self.cost(earlier)
        } else {
            lane.end = place + 1
        }
        lane.frames[place] = frame
        lane.cost += Self.cost(frame)
        if lane.frames.count > window.frameCount || lane.cost > window.byteCount {
            fail("\(lane.frames.count) frames, \(lane.cost) bytes exceed the peer's window")
        }
    }

    /// Whether a frame may be sent in the place of an earlier one.
    private static func isSame(_ frame: [UInt8], as earlier: [UInt8], _ kind: FrameKind) -> Bool {
        if kind == .blank { return frame.count <= earlier.count }
        if frame == earlier { return true }
        // The time that is left becomes shorter.
        return kind == .request && frame.count == earlier.count && timeless(frame) == timeless(earlier)
    }

    /// The serial, the method and the payload of a request.
    private static func timeless(_ frame: [UInt8]) -> [UInt8]? {
        frame.withUnsafeBytes { frame in
            guard let inner = try? InboundFrame(parsing: frame),
                let message = try? InboundMessage(.request, inner.body)
            else { return nil }
            var bytes: [UInt8] = []
            FieldWriter.appendVarint(UInt64(message.serial), to: &bytes)
            FieldWriter.appendVarint(UInt64(message.method), to: &bytes)
            return bytes + message.payload
        }
    }
}
