internal import Glibc
public import LifelineCore
internal import NIOConcurrencyHelpers
internal import NIOCore
internal import NIOPosix

extension NetworkMonitor {
    /// Returns whether `endpoint` can be reached now, and the reason. It can be called with or without watching
    /// `paths`.
    ///
    /// Without a probe only name look-ups are sent: a host counts as reachable when the kernel has a route to one of
    /// its addresses, and the interface of that route is up and has carrier. The host may still be switched off. A
    /// probe makes a connection and closes it at once, which is certain.
    ///
    /// - Parameters:
    ///   - probing: whether to make a connection.
    ///   - timeout: the time limit for everything together.
    public func reachability(
        of endpoint: Endpoint,
        probing: Bool = false,
        timeout: Duration = .seconds(10)
    ) async -> Reachability {
        if Task.isCancelled { return Reachability(reason: .cancelled) }
        let loop = group.any()
        let timeout = TimeAmount.nanoseconds(timeout.clamped(atLeast: .milliseconds(1)).saturatedNanoseconds)
        let result = loop.makePromise(of: Reachability.self)
        let timer = loop.scheduleTask(in: timeout) { result.succeed(Reachability(reason: .timedOut)) }
        let isDecided = NIOLockedValueBox(false)
        result.futureResult.whenComplete { _ in
            timer.cancel()
            isDecided.withLockedValue { $0 = true }
        }
        let lookup = NIOThreadPool.singleton.runIfActive(eventLoop: loop) {
            // When the name service is silent, look-ups that are no longer needed must not delay the others.
            isDecided.withLockedValue { $0 } ? Reachability(reason: .cancelled) : Self.lookUp(endpoint)
        }
        lookup.flatMap { found in
            guard probing, found.isReachable else { return loop.makeSucceededFuture(found) }
            return Self.probe(endpoint, found: found, on: loop, timeout: timeout, until: result.futureResult)
        }.whenComplete { outcome in
            switch outcome {
            case .success(let reachability): result.succeed(reachability)
            // The pool of threads was shut down, which never happens to the shared one.
            case .failure(let error): result.succeed(Reachability(reason: .unknown, detail: "\(error)"))
            }
        }
        return await withTaskCancellationHandler {
            // The future never fails.
            (try? await result.futureResult.get()) ?? Reachability(reason: .cancelled)
        } onCancel: {
            // Only the first result counts.
            result.succeed(Reachability(reason: .cancelled))
        }
    }

    /// Returns whether `endpoint` can be reached now. `reachability(of:probing:timeout:)` also returns the reason.
    public func isReachable(
        _ endpoint: Endpoint,
        probing: Bool = false,
        timeout: Duration = .seconds(10)
    ) async -> Bool {
        await reachability(of: endpoint, probing: probing, timeout: timeout).isReachable
    }

    private static func lookUp(_ endpoint: Endpoint) -> Reachability {
        switch endpoint.address {
        case .tcp(let host, _):
            return RouteLookup.reachability(ofHost: host)
        case .unix(let path):
            var status = stat()
            guard stat(path, &status) == 0 else {
                return Reachability(reason: .noSocket, detail: String(cString: strerror(errno)))
            }
            return Reachability(reason: status.st_mode & S_IFMT == S_IFSOCK ? .local : .noSocket)
        }
    }

    /// Connects to all addresses of a name, to those of the second version of IP a little later than the first (RFC
    /// 8305).
    private static func probe(
        _ endpoint: Endpoint,
        found: Reachability,
        on loop: any EventLoop,
        timeout: TimeAmount,
        until decision: EventLoopFuture<Reachability>
    ) -> EventLoopFuture<Reachability> {
        let bootstrap = ClientBootstrap(group: loop).connectTimeout(timeout).channelInitializer { channel in
            // Also closes it when the time is up or the task was cancelled, and it is still connecting.
            decision.whenComplete { _ in channel.close(promise: nil) }
            return channel.eventLoop.makeSucceededVoidFuture()
        }
        let connected =
            switch endpoint.address {
            case .tcp(let host, let port): bootstrap.connect(host: host, port: port)
            case .unix(let path): bootstrap.connect(unixDomainSocketPath: path)
            }
        return connected.map { channel in
            Reachability(
                reason: .accepted,
                address: channel.remoteAddress?.ipAddress.flatMap(IPAddress.init(withoutZone:)) ?? found.address,
                interface: found.interface
            )
        }.flatMapErrorThrowing { error in
            Reachability(
                reason: Reachability.Reason(probeFailedWith: error),
                address: found.address,
                interface: found.interface,
                detail: "\(error)"
            )
        }
    }
}

extension Reachability.Reason {
    fileprivate init(probeFailedWith error: any Error) {
        switch error {
        case ChannelError.connectTimeout:
            self = .timedOut
        case let error as NIOConnectionError:
            let reasons = error.connectionErrors.map { Reachability.Reason(probeFailedWith: $0.error) }
            // A host that refuses exists, which is more informative than a silent address.
            let told = [.refused, .timedOut].first { reasons.contains($0) }
            self = told ?? (reasons.isEmpty ? .nameNotFound : .probeFailed)
        case let error as IOError where error.errnoCode == ECONNREFUSED:
            self = .refused
        case let error as IOError where error.errnoCode == ETIMEDOUT:
            self = .timedOut
        default:
            self = .probeFailed
        }
    }
}
