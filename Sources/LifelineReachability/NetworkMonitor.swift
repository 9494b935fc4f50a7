public import Logging
internal import NIOConcurrencyHelpers
package import NIOCore
internal import NIOPosix

/// Watches the network by the kernel's netlink interface.
///
///     let monitor = NetworkMonitor()
///     for await path in monitor.paths {
///         print(path)
///     }
///
/// It watches as long as somebody iterates `paths`: one socket, however many iterate, and none when nobody does. So
/// there is nothing to start and nothing to stop; cancel the task, or leave the loop.
///
/// It sees the network namespace that its event loop's thread is in, which is the process's.
public final class NetworkMonitor: Sendable {
    private let watch: NetworkWatch
    package let group: any EventLoopGroup

    /// Makes a monitor, which costs nothing until it is used.
    ///
    /// - Parameter logger: gets what goes wrong with netlink: `warning`; events that were lost and made up for:
    ///   `debug`.
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

    /// What the network allows, and every change of it, for any number of subscribers, each from the newest path on.
    public var paths: NetworkPaths { NetworkPaths(watch: watch) }

    /// The path as it is: at once while somebody iterates `paths`, and otherwise after asking the kernel.
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
/// Each iteration begins with the newest path there is, at once when it is known already, and goes on with later ones.
/// Two paths that follow each other differ. It ends when the task that iterates is cancelled. Nothing is kept for a
/// subscriber: who is slow gets the newest path next, and not those in between.
public struct NetworkPaths: AsyncSequence, Sendable {
    /// What iterates. When it is dropped, or its task is cancelled, it takes no part in the monitor any more.
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
                // One that was there before the cancellation would come first otherwise.
                if Task.isCancelled { return nil }
                // To who is slow, a change and its reversal are none.
                guard path != last else { continue }
                last = path
                return path
            }
            return nil
        }
    }

    fileprivate let watch: NetworkWatch

    /// Begins with the newest path there is.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: watch.subscribe().makeAsyncIterator())
    }
}

/// Who watches, and the driver that runs as long as somebody does.
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
            // Under the lock, so that no newer path comes before it. To yield runs nobody's code.
            if let path = state.path { continuation.yield(path) }
            if state.driver != nil { return (state.lastID, nil as Driver?) }
            let driver = Driver.makeEmptyBox(valueType: NetlinkDriver.self, eventLoop: loop)
            state.driver = driver
            return (state.lastID, driver)
        }
        // Nobody has the stream yet, so that it cannot have ended before this.
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
        // Released here and not under the lock.
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

    /// The loop runs it after the start.
    private func stop(_ driver: Driver) {
        loop.execute {
            driver.value?.stop()
            driver.value = nil
        }
    }

    private func publish(_ path: NetworkPath, by driver: Driver) {
        state.withLockedValue { state in
            // One that is being stopped has nothing to say to those who came after.
            guard state.driver === driver else { return }
            state.path = path
            for subscriber in state.subscribers.values { subscriber.yield(path) }
        }
    }
}
