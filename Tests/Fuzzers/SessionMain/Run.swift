internal import Lifeline
internal import LifelineCore

/// Reads `bytes` as the life of one end of a session with a hostile peer, and what its user does. Traps at a
/// contradiction.
///
/// The first byte selects the end. Then steps follow: a byte for the event, and its arguments.
func run(_ bytes: [UInt8]) {
    var steps = Steps(rest: bytes[...])
    let role: SessionRole = steps.number() & 1 == 0 ? .client : .server
    let peer = MachineHostilePeer.opened(role, narrowOptions)
    peer.keepsEvents = false
    while !steps.rest.isEmpty, !peer.isOver {
        perform(steps.number(), &steps, peer)
        _ = peer.offered()
        check(peer.failure == nil)
        check(peer.machine.keptByteCount >= 0 && peer.machine.requestCount == peer.calls.count)
    }
}

/// So narrow that a few frames reach every limit.
private let narrowOptions: SessionOptions = {
    var options = SessionOptions()
    options.inboundWindow = SessionWindow(frameCount: 8, byteCount: 2 << 10)
    options.outboundLimit = SessionWindow(frameCount: 8, byteCount: 2 << 10)
    options.maximumRequestCount = 4
    options.maximumRunningCount = 4
    return options
}()

private struct Steps {
    var rest: ArraySlice<UInt8>

    mutating func number() -> Int { Int(rest.popFirst() ?? 0) }

    /// Bytes after a byte with their count.
    mutating func bytes() -> [UInt8] {
        let bytes = rest.prefix(number())
        rest = rest.dropFirst(bytes.count)
        return [UInt8](bytes)
    }
}

private func perform(_ step: Int, _ steps: inout Steps, _ peer: MachineHostilePeer) {
    switch step % 16 {
    case 0..<6:
        let frame = steps.bytes()
        for disagreement in FrameOracle.disagreements(frame) { fatalError("\(disagreement): \(frame)") }
        peer.feed(frame)
    case 6: _ = peer.push("a/\(steps.number() % 4)", size: steps.number())
    case 7: _ = peer.push("a/0", size: steps.number(), .replaceable(key: "\(steps.number() % 3)"))
    case 8: _ = peer.push("a/0", size: steps.number(), .expiring(after: .milliseconds(steps.number())))
    case 9: peer.request("a/1", hasParts: steps.number() & 1 == 0, timeout: .milliseconds(steps.number()))
    case 10:
        guard let call = peer.calls.last else { return }
        switch steps.number() % 3 {
        case 0: peer.sendPart(of: call, size: steps.number())
        case 1: peer.endParts(of: call)
        default: peer.cancel(call)
        }
    case 11:
        guard let request = peer.running.first else { return }
        if steps.number() & 1 == 0 {
            peer.respond(to: request, size: steps.number())
        } else {
            peer.sendPart(ofResponseTo: request, size: steps.number())
        }
    case 12: peer.finishAll()
    case 13: peer.pass(.milliseconds(steps.number()))
    case 14:
        peer.cut()
        let received = UInt64(steps.number()) % (peer.ordinaryPlaces + 1)
        peer.open(
            // A server's machine has only one session.
            isResumed: peer.role == .server || steps.number() & 1 == 0,
            progress: OpeningProgress(processed: received, received: received, urgent: peer.urgentPlaces)
        )
    default: peer.close()
    }
}

private func check(_ condition: Bool, line: UInt = #line) {
    if !condition { fatalError("what line \(line) checks does not hold") }
}
