public import Logging
internal import NIOConcurrencyHelpers
package import NIOCore
internal import NIOPosix

/// Watches the network through the kernel's netlink interface.
///
///     let monitor = NetworkMonitor()
///     for await path in monitor.paths {
///         print(path)
///     }
///
/// It watches as long as any task iterates `paths`, with one socket for all of them, and none without iterations. There
/// is nothing to start or stop: cancel the task, or leave the loop.
///
/// It sees the network namespace of its event loop's thread, which is that of the process.
public final class NetworkMonitor: Sendable {
    private let watch: NetworkWatch
    package let group: any EventLoopGroup

    /// Makes a monitor, which costs nothing until it is used.
    ///
    /// - Parameter logger: receives failures of netlink at `warning`, and lost events that were made up for at `debug`.
    public convenience init(
        configuration: NetworkMonitorConfiguration = NetworkMonitorConfiguration(),
        logger: Logger = Logger(label: "lifeline.network")
    ) {
        self.init(configuration: configuration, logger: logger, group: MultiThreadedEventLoopGroup.singleton)
    }

    package init(configuration: NetworkMonitorConfiguration, logger: Logger, group: any EventLoopGroup) {
        self.group = group
        watch = NetworkWatch(configuration: configuration, logger: logger, loop: group.any())
    }

    /// The present path, and every change of it, for any number of subscribers. Each subscriber begins with the newest
    /// path.
    public var paths: NetworkPaths { NetworkPaths(watch: watch) }

    /// The present path: at once while any task iterates `paths`, and otherwise after asking the kernel.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before it is known.
    public var currentPath: NetworkPath {
        get async throws(CancellationError) {
            for await path in paths { return path }
            throw CancellationError()
        }
    }
}

/// The paths of a `NetworkMonitor`, for any number of subscribers.
///
/// Each iteration begins with the newest path, at once if it is known, and goes on with later ones. Consecutive paths
/// differ. It ends when the task that iterates is cancelled. No paths are kept for a subscriber: a slow one gets the
/// newest path next, and not those in between.
public struct NetworkPaths: AsyncSequence, Sendable {
    /// The iterator. When it is released, or its task is cancelled, it leaves the monitor.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var base: AsyncStream<NetworkPath>.AsyncIterator
        private var last: NetworkPath?

        package init(base: AsyncStream<NetworkPath>.AsyncIterator) {
            self.base = base
        }

        /// Waits for the next path; nil when the task is cancelled.
        public mutating func next() async -> NetworkPath? {
            await next(isolation: nil)
        }

        /// Waits for the next path; nil when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> NetworkPath? {
            while let path = await base.next(isolation: actor) {
                // Otherwise a path from before the cancellation would come first.
                if Task.isCancelled { return nil }
                // For a slow subscriber, a change and its reversal are no change.
                guard path != last else { continue }
                last = path
                return path
            }
            return nil
        }
    }

    fileprivate let watch: NetworkWatch

    /// Begins with the newest path.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: watch.subscribe().makeAsyncIterator())
    }
}

/// The subscribers, and the driver that runs as long as there are any.
private final class NetworkWatch: Sendable {
    private typealias Driver = NIOLoopBoundBox<NetlinkDriver?>

    private struct State {
        var subscribers: [UInt64: AsyncStream<NetworkPath>.Continuation] = [:]
        var lastID: UInt64 = 0
        var driver: Driver?
        var path: NetworkPath?
    }

    private let configuration: NetworkMonitorConfiguration
    private let logger: Logger
    private let loop: any EventLoop
    private let state = NIOLockedValueBox(State())

    init(configuration: NetworkMonitorConfiguration, logger: Logger, loop: any EventLoop) {
        self.configuration = configuration
        self.logger = logger
        self.loop = loop
    }

    func subscribe() -> AsyncStream<NetworkPath> {
        let (stream, continuation) = AsyncStream.makeStream(of: NetworkPath.self, bufferingPolicy: .bufferingNewest(1))
        let (id, driver) = state.withLockedValue { state in
            state.lastID += 1
            state.subscribers[state.lastID] = continuation
            // Under the lock, so that no newer path comes before it. Yielding runs no user code.
            if let path = state.path { continuation.yield(path) }
            if state.driver != nil { return (state.lastID, nil as Driver?) }
            let driver = Driver.makeEmptyBox(valueType: NetlinkDriver.self, eventLoop: loop)
            state.driver = driver
            return (state.lastID, driver)
        }
        // No task has the stream yet, so it cannot have ended before this.
        continuation.onTermination = { [self] _ in unsubscribe(id) }
        if let driver { start(driver) }
        return stream
    }

    private func unsubscribe(_ id: UInt64) {
        let (continuation, driver) = state.withLockedValue { state in
            let continuation = state.subscribers.removeValue(forKey: id)
            guard state.subscribers.isEmpty, let driver = state.driver else { return (continuation, nil as Driver?) }
            (state.driver, state.path) = (nil, nil)
            return (continuation, driver)
        }
        // Released here, and not under the lock.
        _ = continuation
        driver.map(stop)
    }

    private func start(_ driver: Driver) {
        loop.execute { [self] in
            driver.value = NetlinkDriver(configuration: configuration, loop: loop, logger: logger) { [weak self] path in
                self?.publish(path, by: driver)
            }
            driver.value?.start()
        }
    }

    /// Stops a driver. The loop runs this after the start.
    private func stop(_ driver: Driver) {
        loop.execute {
            driver.value?.stop()
            driver.value = nil
        }
    }

    private func publish(_ path: NetworkPath, by driver: Driver) {
        state.withLockedValue { state in
            // A driver that is being stopped has nothing to report to later subscribers.
            guard state.driver === driver else { return }
            state.path = path
            for subscriber in state.subscribers.values { subscriber.yield(path) }
        }
    }
}
