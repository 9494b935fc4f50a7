internal import Lifeline
internal import LifelineCore

/// The sessions of the server of `SessionCutRun`, and the real registry, which lets clients in at once.
final class CutServer {
    private typealias Admission = SessionAdmission<[UInt8], (end: CutEnd, id: SessionID)>

    private let options: SessionOptions
    private var registry = SessionRegistry<CutSession>(SessionRegistryConfiguration(), seed: 1)
    private var connections: [(link: CutLink, admission: Admission)] = []
    private var sessionCount: UInt64 = 0
    /// A session has begun; nothing was done with it yet.
    var onSession: (CutEnd) -> Void = { _ in }

    init(_ options: SessionOptions) { self.options = options }

    func accept(_ link: CutLink) { connections.append((link, Admission())) }

    private func index(of link: CutLink) -> Int? { connections.firstIndex { $0.link === link } }

    /// Takes at most so many bytes from a connection.
    func receive(over link: CutLink, atMost byteCount: Int = .max, now: MonotonicTime) {
        let frames = link.deliver(to: .server, atMost: byteCount)
        guard let index = index(of: link) else { return }
        if let session = connections[index].admission.session {
            session.end.received(frames, over: link, now: now)
        } else {
            for frame in frames { receive(frame, over: link, now: now) }
        }
        if link.isAtEnd(at: .server) { disconnected(link, now: now) }
    }

    /// Takes a frame of a connection that had no session when it came.
    private func receive(_ frame: [UInt8], over link: CutLink, now: MonotonicTime) {
        guard let index = index(of: link) else { return }
        let hello = frame.withUnsafeBytes { bytes -> ClientOpening? in
            guard let inner = try? InboundFrame(parsing: bytes), inner.kind == .hello else { return nil }
            return try? ClientOpening(parsing: inner.body)
        }
        let kind = hello.map { Admission.Kind.hello(isResume: $0.credentials != nil) } ?? .other
        switch connections[index].admission.received(frame, kind) {
        case .nothing, .drop: break
        case .decide: if let hello { attach(link, hello, now: now) }
        case .refuse, .leave: disconnected(link, now: now)
        case .handOver(let session): session.end.received([frame], over: link, now: now)
        }
    }

    /// A connection is gone.
    func disconnected(_ link: CutLink, now: MonotonicTime) {
        guard let index = index(of: link) else { return }
        let connection = connections.remove(at: index)
        link.end(from: .server)
        guard let session = connection.admission.session else { return }
        session.end.disconnected(link, now: now)
        registry.disconnected(link.id, of: session.id, now: now)
    }

    private func attach(_ link: CutLink, _ hello: ClientOpening, now: MonotonicTime) {
        var fresh: SessionCredentials {
            sessionCount += 1
            return SessionCredentials(id: SessionID(sessionCount, 1), token: SessionToken(sessionCount, 2))
        }
        let action = registry.receivedHello(
            hello,
            name: "client",
            over: link.id,
            storeIsOpen: false,
            now: now,
            fresh: fresh
        ) { _ in CutSession(end: CutEnd(.server, options)) }
        switch action {
        case .openStore, .seek, .adopt, .endFirst: preconditionFailure("The script has one server without a store.")
        case .refuse(let goodbye): say(goodbye, over: link)
        case .create(let credentials, let session):
            onSession(session.end)
            open(session.end, credentials, hello, isResumed: false, link, now: now)
        case .resume(let credentials, let session):
            open(session.end, credentials, hello, isResumed: true, link, now: now)
        }
    }

    private func open(
        _ end: CutEnd,
        _ credentials: SessionCredentials,
        _ hello: ClientOpening,
        isResumed: Bool,
        _ link: CutLink,
        now: MonotonicTime
    ) {
        guard let index = index(of: link),
            let earlier = connections[index].admission.attach(to: (end, credentials.id))
        else { return }
        let refusal = end.opened(by: hello, credentials, isResumed: isResumed, over: link, now: now)
        if !earlier.isEmpty { end.received(earlier, over: link, now: now) }
        if let refusal { say(refusal, over: link) }
    }

    /// The last thing on a connection.
    private func say(_ goodbye: SessionGoodbye, over link: CutLink) {
        if let index = index(of: link) { connections[index].admission.end() }
        var bytes: [UInt8] = []
        goodbye.write(to: &bytes)
        link.write(bytes, from: .server)
        link.end(from: .server)
    }
}

/// A session as the registry keeps it. It belongs to one thread, as the registry does, which asks for `Sendable`.
private struct CutSession: @unchecked Sendable {
    let end: CutEnd
}
