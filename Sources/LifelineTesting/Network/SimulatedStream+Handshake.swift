internal import LifelineCore

// The handshake.
extension SimulatedStream {
    /// Starts to connect.
    func connect(for owner: any StreamOwner) {
        ends[0].owner = owner
        ends[0].host.openStreamCount += 1
        connect()
    }

    private func connect() {
        let host = ends[0].host
        if !host.isLinkUp {
            // A kernel without a route reports that at once, but not from within the call.
            simulation.schedule(after: .zero) { self.fail(.client, .networkUnreachable) }
            return
        }
        schedule(after: transitTime) {
            guard self.ends[0].state == .opening, self.ends[1].state == .opening else { return }
            if self.isPathOpen { self.server?.answer(self) } else { self.retryHandshake { self.connect() } }
        }
    }

    /// The server accepts the connection.
    func accept() {
        schedule(after: transitTime) {
            guard self.isPathOpen else { return self.retryHandshake { self.accept() } }
            guard self.ends[0].state == .opening else { return self.sendReset(from: .client) }
            self.move(.client, to: .open)
            self.confirm()
            self.ends[0].owner?.streamOpened()
        }
    }

    /// The server refuses the connection.
    func refuse(_ error: ConnectionError) {
        schedule(after: transitTime) {
            guard self.isPathOpen else { return self.retryHandshake { self.connect() } }
            self.fail(.client, error)
        }
    }

    /// The server does not even answer.
    func ignore() {
        retryHandshake { self.connect() }
    }

    /// Tells the server that the client's end is open, before any byte.
    private func confirm() {
        send(from: .client) {
            if self.isPathOpen { self.openServerEnd() } else { self.retryHandshake { self.confirm() } }
        }
    }

    func openServerEnd() {
        guard ends[1].state == .opening else { return }
        move(.server, to: .open)
        ends[1].owner = server?.accepted(self)
        if ends[1].owner == nil { abort(.server) }
    }

    /// As on Linux: after 1 s, 2 s, 4 s and so on. After the last attempt it still waits, and then fails.
    private func retryHandshake(_ body: @escaping () -> Void) {
        guard ends[0].state != .gone else { return }
        let delay = Duration.seconds(1 << handshakeRetries)
        if handshakeRetries == SimulatedStream.maximumHandshakeRetries {
            schedule(after: delay) {
                if self.ends[0].state == .opening { self.fail(.client, .handshakeTimedOut) }
            }
        } else {
            handshakeRetries += 1
            schedule(after: delay, body)
        }
    }
}
