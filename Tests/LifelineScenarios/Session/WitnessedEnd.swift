internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// The frames that one end of a session has sent and received, counted as the protocol's document says.
final class WitnessedEnd {
    /// The frames of a lane that this end has sent and that are not acknowledged.
    private struct Lane {
        var frames: [UInt64: [UInt8]] = [:]
        var next: UInt64 = 1
        /// Behind the highest place that was sent.
        var end: UInt64 = 1
        var highestAcknowledged: UInt64 = 0
        var cost = 0

        mutating func acknowledge(_ places: ClosedRange<UInt64>) {
            highestAcknowledged = max(highestAcknowledged, places.upperBound)
            for place in frames.keys where places.contains(place) {
                cost -= WitnessedEnd.cost(frames.removeValue(forKey: place) ?? [])
            }
        }
    }

    /// Messages that share a credit.
    private enum Stream: Hashable {
        case pushes(method: UInt32)
        case requestParts(serial: UInt32)
        case responseParts(serial: UInt32)
    }

    private struct Credit {
        var granted: UInt64
        var used: UInt64 = 0
    }

    private let name: String
    private let fail: (String) -> Void
    /// The connection that has the session.
    private(set) var connection: Int
    /// The window and the credit of the peer.
    private var window: SessionWindow
    private let initialCredit: UInt64
    private var ordinary = Lane()
    private var urgent = Lane()
    private var credits: [Stream: Credit] = [:]
    /// The number of frames that this end has read of each lane.
    private var received: UInt64 = 0
    private var receivedUrgent: UInt64 = 0
    /// The numbers of the pushes that it has read and not acknowledged, by their places.
    private var unprocessed: [UInt64: Int] = [:]
    /// The places that this end has acknowledged in ranges, without those that `ordinary` has included since.
    private var acknowledged: Set<UInt64> = []
    /// Those of them that it has to acknowledge again on the present connection.
    private var untold: Set<UInt64> = []

    /// - Parameter peer: the terms of the peer.
    init(_ name: String, over connection: Int, _ peer: SessionTerms, fail: @escaping (String) -> Void) {
        (self.name, self.connection, self.fail) = (name, connection, fail)
        (window, initialCredit) = (peer.window, UInt64(peer.credit))
    }

    private static func cost(_ frame: [UInt8]) -> Int { frame.count + SessionSize.frameOverhead }

    // MARK: Openings

    /// Checks the progress that this end states in an opening.
    func checkOpening(_ progress: OpeningProgress, _ isProcessed: (Int) -> Bool) {
        if progress.received > received || progress.urgent > receivedUrgent {
            fail("\(name) states that it has received \(progress), of \(received) frames")
        }
        checkProcessed(0...progress.processed, isProcessed)
    }

    /// The session goes on over another connection.
    ///
    /// - Parameters:
    ///   - progress: the peer's progress.
    ///   - own: the progress that this end has stated.
    func resume(
        over connection: Int,
        _ peer: SessionTerms,
        behind progress: OpeningProgress,
        received own: OpeningProgress
    ) {
        self.connection = connection
        window = SessionWindow(
            frameCount: max(window.frameCount, peer.window.frameCount),
            byteCount: max(window.byteCount, peer.window.byteCount)
        )
        if progress.received < ordinary.highestAcknowledged || progress.urgent < urgent.highestAcknowledged {
            fail("the peer of \(name) has acknowledged more than it has received")
        }
        ordinary.acknowledge(0...progress.processed)
        urgent.acknowledge(0...progress.urgent)
        (ordinary.next, urgent.next) = (progress.received + 1, progress.urgent + 1)
        (received, receivedUrgent) = (own.received, own.urgent)
        unprocessed = unprocessed.filter { $0.key <= own.received }
        untold = acknowledged.filter { $0 > own.processed }
    }

    // MARK: Frames

    func wrote(
        _ frame: [UInt8],
        _ kind: FrameKind,
        _ body: UnsafeRawBufferPointer,
        _ counts: inout SessionWitness.Counts,
        _ isProcessed: (Int) -> Bool
    ) {
        switch kind.lane {
        case .ordinary?:
            countCredit(frame, kind, body)
            send(frame, kind, in: &ordinary, &counts)
        case .urgent?: send(frame, kind, in: &urgent, &counts)
        case nil where kind == .credit: counts.grants += 1
        case nil where kind == .acknowledgement:
            guard let acknowledgement = try? Acknowledgement(parsing: body) else {
                return fail("\(name) writes a malformed acknowledgement")
            }
            if !acknowledgement.ranges.isEmpty { counts.acknowledgedRanges += 1 }
            checkProcessed(0...acknowledgement.ordinary, isProcessed)
            for range in acknowledgement.ranges { checkProcessed(range, isProcessed) }
            noteRanges(of: acknowledgement)
            if acknowledgement.urgent > receivedUrgent {
                fail("\(name) acknowledges urgent frames that it has not read")
            }
        case nil: break
        }
    }

    /// Checks that the first acknowledgement on a connection has all ranges that were sent before.
    private func noteRanges(of acknowledgement: Acknowledgement) {
        for range in acknowledgement.ranges { acknowledged.formUnion(range) }
        acknowledged = acknowledged.filter { $0 > acknowledgement.ordinary }
        let told = acknowledgement.ranges.reduce(into: Set<UInt64>()) { $0.formUnion($1) }
        let missing = untold.filter { $0 > acknowledgement.ordinary && !told.contains($0) }
        if !missing.isEmpty { fail("\(name) does not acknowledge \(missing.sorted()) again on a new connection") }
        untold = []
    }

    /// Checks places that this end acknowledges.
    private func checkProcessed(_ places: ClosedRange<UInt64>, _ isProcessed: (Int) -> Bool) {
        if places.upperBound > received {
            fail("\(name) acknowledges place \(places.upperBound) of \(received) that it has read")
        }
        for (place, number) in unprocessed where places.contains(place) {
            unprocessed[place] = nil
            if !isProcessed(number) { fail("\(name) acknowledges \(number), which is not processed") }
        }
    }

    private func send(_ frame: [UInt8], _ kind: FrameKind, in lane: inout Lane, _ counts: inout SessionWitness.Counts) {
        let place = lane.next
        lane.next += 1
        if kind == .blank { counts.blanks += 1 }
        if place < lane.end {
            counts.resentFrames += 1
            guard let earlier = lane.frames[place] else {
                return fail("\(name) sends place \(place) again, which was acknowledged")
            }
            if !Self.isSame(frame, as: earlier, kind) { fail("\(name) sends another frame at place \(place)") }
            lane.cost -= Self.cost(earlier)
        } else {
            lane.end = place + 1
        }
        lane.frames[place] = frame
        lane.cost += Self.cost(frame)
        if lane.frames.count > window.frameCount || lane.cost > window.byteCount {
            fail("\(lane.frames.count) frames, \(lane.cost) bytes of \(name) exceed the peer's window")
        }
    }

    func read(_ frame: [UInt8], _ kind: FrameKind, _ body: UnsafeRawBufferPointer) {
        switch kind.lane {
        case .ordinary?:
            received += 1
            guard kind == .push || kind == .request, let message = try? InboundMessage(kind, body) else { return }
            if kind == .request {
                credits[.responseParts(serial: message.serial)] = nil
            } else if message.durable == 0, let number = SessionNote.number(message.payload) {
                unprocessed[received] = number
            }
        case .urgent?: receivedUrgent += 1
        case nil where kind == .acknowledgement:
            guard let acknowledgement = try? Acknowledgement(parsing: body) else { return }
            ordinary.acknowledge(0...acknowledgement.ordinary)
            for range in acknowledgement.ranges { ordinary.acknowledge(range) }
            urgent.acknowledge(0...acknowledgement.urgent)
        case nil where kind == .credit:
            guard let grant = try? CreditGrant(parsing: body) else { return }
            let stream: Stream =
                switch grant.target {
                case .method(let number): .pushes(method: number)
                case .requestParts(let serial): .requestParts(serial: serial)
                case .responseParts(let serial): .responseParts(serial: serial)
                }
            let granted = credits[stream]?.granted ?? initialCredit
            credits[stream, default: Credit(granted: initialCredit)].granted = max(granted, grant.bytes)
        case nil: break
        }
    }

    // MARK: Credit

    private static func stream(_ kind: FrameKind, _ body: UnsafeRawBufferPointer) -> Stream? {
        guard let message = try? InboundMessage(kind, body) else { return nil }
        return switch kind {
        case .push: .pushes(method: message.method)
        case .requestPart: .requestParts(serial: message.serial)
        case .responsePart: .responseParts(serial: message.serial)
        default: nil
        }
    }

    /// Counts the credit of a frame that is about to be sent. A blank gives back the credit of the frame whose place it
    /// has.
    private func countCredit(_ frame: [UInt8], _ kind: FrameKind, _ body: UnsafeRawBufferPointer) {
        if ordinary.next < ordinary.end {
            guard kind == .blank, let earlier = ordinary.frames[ordinary.next] else { return }
            earlier.withUnsafeBytes { bytes in
                guard let inner = try? InboundFrame(parsing: bytes), let kind = inner.kind,
                    let stream = Self.stream(kind, inner.body)
                else { return }
                let used = credits[stream]?.used ?? 0
                credits[stream]?.used = used - min(UInt64(Self.cost(earlier)), used)
            }
            return
        }
        if kind == .request, let message = try? InboundMessage(kind, body) {
            credits[.requestParts(serial: message.serial)] = nil
        }
        guard let stream = Self.stream(kind, body) else { return }
        var credit = credits[stream] ?? Credit(granted: initialCredit)
        if credit.used >= credit.granted { fail("\(name) sends a frame of \(stream) without credit: \(credit)") }
        credit.used += UInt64(Self.cost(frame))
        credits[stream] = credit
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
