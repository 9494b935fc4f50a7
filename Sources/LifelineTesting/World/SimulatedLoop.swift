internal import Dispatch
internal import LifelineCore
internal import NIOCore

/// The event loop of a process in a world. Its tasks are events of the simulation.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class SimulatedLoop: EventLoop, @unchecked Sendable {
    /// Nil once the world has ended. The loop then drops new work.
    private weak var process: WorldProcess?
    private let simulation: Simulation
    /// Whether one of its tasks runs now. Tasks of programs run on the same thread, but not on the loop.
    private var isRunning = false
    private var tasks: [UInt64: LoopTask] = [:]
    private var lastID: UInt64 = 0
    /// Its world has ended, and its time stands still.
    private var isOver = false

    private struct LoopTask {
        let run: () -> Void
        /// The event that runs it.
        var event: Simulation.EventID?
        /// Called instead of `run` if the loop ends first; if nil, `run` is called nevertheless.
        var cancel: (() -> Void)?
    }

    init(_ process: WorldProcess) {
        self.process = process
        simulation = process.host.simulation
    }

    var inEventLoop: Bool { isRunning }

    /// It stands still while the host sleeps, as that of a real loop does.
    var now: NIODeadline {
        .uptimeNanoseconds(UInt64(max(0, process?.host.machine.uptime.saturatedNanoseconds ?? 0)))
    }

    /// Runs `body` as a task of the loop: now, or after the running one.
    func run(_ body: @escaping () -> Void) {
        if isRunning {
            schedule(at: nil, LoopTask(run: body))
            return
        }
        isRunning = true
        body()
        isRunning = false
    }

    /// Runs `body` after all earlier tasks.
    func runSoon(_ body: @escaping () -> Void) { schedule(at: nil, LoopTask(run: body)) }

    @discardableResult
    private func schedule(at deadline: NIODeadline?, _ task: LoopTask) -> UInt64 {
        lastID += 1
        tasks[lastID] = task
        if !isOver { arm(lastID, for: deadline) }
        return lastID
    }

    private func arm(_ id: UInt64, for deadline: NIODeadline?) {
        let delay = deadline.map { max(.zero, Duration($0 - now)) } ?? .zero
        tasks[id]?.event = process?.schedule(at: simulation.now + delay) { [weak self] in
            guard let self else { return }
            // The host has slept meanwhile.
            if let deadline, now < deadline { return arm(id, for: deadline) }
            if let task = tasks.removeValue(forKey: id) { run(task.run) }
        }
    }

    func execute(_ task: @escaping @Sendable () -> Void) { runSoon(task) }

    func scheduleTask<T>(deadline: NIODeadline, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
        let promise = makePromise(of: T.self)
        let id = schedule(
            at: deadline,
            LoopTask {
                do { promise.assumeIsolated().succeed(try task()) } catch { promise.fail(error) }
            } cancel: {
                promise.fail(EventLoopError.shutdown)
            }
        )
        return Scheduled(promise: promise) { [weak self] in
            guard let self, let task = tasks.removeValue(forKey: id) else { return }
            if let event = task.event { simulation.cancel(event) }
        }
    }

    func scheduleTask<T>(in delay: TimeAmount, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
        scheduleTask(deadline: now + delay, task)
    }

    /// The loop ends with its world.
    func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        execute { callback(EventLoopError.unsupportedOperation) }
    }

    /// The world has ended: runs the pending tasks, and cancels the scheduled ones.
    func end() {
        isOver = true
        while let id = tasks.keys.min(), let task = tasks.removeValue(forKey: id) { run(task.cancel ?? task.run) }
    }
}
