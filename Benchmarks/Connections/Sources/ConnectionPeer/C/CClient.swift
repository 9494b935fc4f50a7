internal import CEpollPeer
internal import Glibc

/// The client in C.
final class CClient: PeerClient {
    private var client: OpaquePointer?

    func open(port: Int, connectionCount: Int) throws {
        client = epoll_client_open(UInt16(port), connectionCount)
        if client == nil { throw SystemError() }
    }

    func oneWay(_ payload: Payload, _ limit: SendLimit) throws -> Outcome {
        try outcome { epoll_client_one_way(client, payload.bytes, payload.bytes.count, epoll_limit(limit), $0) }
    }

    func echo(_ payload: Payload, inFlight: Int, _ limit: SendLimit) throws -> Outcome {
        try outcome { epoll_client_echo(client, payload.bytes, payload.bytes.count, inFlight, epoll_limit(limit), $0) }
    }

    func each(_ payload: Payload) throws -> Outcome {
        try outcome { epoll_client_each(client, payload.bytes, payload.bytes.count, $0) }
    }

    func paced(_ payload: Payload, perSecond: Int, nanoseconds: UInt64) throws -> Outcome {
        try outcome {
            epoll_client_paced(client, payload.bytes, payload.bytes.count, UInt32(perSecond), nanoseconds, $0)
        }
    }

    func close() {
        epoll_client_close(client)
        client = nil
    }

    private func outcome(of run: (UnsafeMutablePointer<epoll_outcome>) -> Bool) throws -> Outcome {
        var outcome = epoll_outcome()
        guard run(&outcome) else { throw SystemError() }
        return Outcome(
            messages: Int(outcome.messages),
            nanoseconds: outcome.nanoseconds,
            median: outcome.median,
            percentile99: outcome.percentile_99
        )
    }
}

extension epoll_limit {
    fileprivate init(_ limit: SendLimit) {
        self.init(nanoseconds: limit.nanoseconds, messages: UInt64(limit.messages))
    }
}

/// The last error of the system.
struct SystemError: Error, CustomStringConvertible {
    var description = errno == EBADMSG ? WrongEcho().description : String(cString: strerror(errno))
}
