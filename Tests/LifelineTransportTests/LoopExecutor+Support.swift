import LifelineCore
import LifelineRuntime
import NIOConcurrencyHelpers
import NIOCore

@testable import LifelineTransport

extension LoopExecutor {
    /// A read that is processed at once.
    func readAtOnce(isAll: Bool, _ receive: () -> Void) {
        read(isAll: isAll) { _ in
            receive()
            return false
        }
    }
}

/// A read that stops until it is told to continue.
final class TestClock: Sendable {
    private let time = NIOLockedValueBox(NIODeadline.uptimeNanoseconds(1_000_000_000))

    var now: NIODeadline { time.withLockedValue { $0 } }

    func advance(by amount: TimeAmount) {
        time.withLockedValue { $0 = $0 + amount }
    }
}

/// A session that has something to send.
final class OfferingSource: FrameSource {
    private let whenAsked: @Sendable () -> Void

    init(whenAsked: @escaping @Sendable () -> Void) { self.whenAsked = whenAsked }

    func offer() { whenAsked() }
}

/// A connection that has something to write.
final class WritingConnection: ConnectionControl {
    var whenContinued: () -> Void = {}
    private let whenFlushed: () -> Void

    init(whenFlushed: @escaping () -> Void) { self.whenFlushed = whenFlushed }

    /// Call it on the loop.
    func bound(to loop: any EventLoop) -> NIOLoopBound<any ConnectionControl> {
        NIOLoopBound<any ConnectionControl>(self, eventLoop: loop)
    }

    var undeliveredByteCount: Int { 0 }

    func flush() { whenFlushed() }
    func probe() {}
    func admitPeer() {}
    func resumeReading() {}
    func continueReading() { whenContinued() }
    func stopReceiving() {}
    func close() {}
    func fail(_: ConnectionError, resetting _: Bool) {}
}

/// Blocks the thread for a time.
func spin(for time: TimeAmount) {
    let end = NIODeadline.now() + time
    while NIODeadline.now() < end {}
}
