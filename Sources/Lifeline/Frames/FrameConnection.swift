public import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport

/// A connection whose frames a `FrameHandler` takes. Any thread may use and keep it.
public struct FrameConnection: Sendable {
    /// The endpoint of this side.
    public var localEndpoint: Endpoint { transport.localEndpoint }

    /// The endpoint of the peer; on a server's Unix socket, whose clients have no name, the socket itself.
    public var remoteEndpoint: Endpoint { transport.remoteEndpoint }

    /// The application protocol that the two sides have agreed on over TLS (ALPN); nil when they agreed on none.
    public var applicationProtocol: String? { transport.applicationProtocol }

    /// The result of opening the WebSocket; nil on other connections.
    public var webSocket: WebSocketOpening? { transport.webSocket }

    let transport: any TransportConnection
    let inputEnded: Latch<ConnectionError?>
    let encoder: FrameEncoder

    /// Sends a frame with a copy of `payload`. Accepted frames are written in the order of the calls, before a graceful
    /// close.
    ///
    /// - Throws: `ConnectionError` `sendQueueFull` while the bytes that the peer has not made room for are over
    ///   `ConnectionConfiguration.outboundWaterMarks`: see `waitForRoom()`. `messageRefused` when the payload is over
    ///   the limit; `sendingFinished` when the connection is closing; or the reason for which it has failed.
    public func send(_ payload: UnsafeRawBufferPointer) throws(ConnectionError) {
        do throws(FramingError) {
            try encoder.checkPayload(ofLength: payload.count)
        } catch {
            throw .messageRefused("A frame", error)
        }
        let sent: Swift.Result<Void, ConnectionError> = withUnsafeTemporaryAllocation(
            byteCount: Varint.maximumLength,
            alignment: 1
        ) { prefix in
            let length = Varint.encode(UInt64(payload.count), into: prefix)
            return Swift.Result { () throws(ConnectionError) in
                try offer(UnsafeRawBufferPointer(rebasing: prefix[..<length]), payload)
            }
        }
        try sent.get()
    }

    /// Sends a message. Throws as `send(_:)` of a payload does, and `messageRefused` when the message cannot be
    /// encoded.
    public func send(_ message: some DelimitedMessage) throws(ConnectionError) {
        do {
            try message.withDelimitedBytes(partial: false) { frame in
                try encoder.checkFrame(frame)
                try offer(frame, UnsafeRawBufferPointer(start: nil, count: 0))
            }
        } catch let error as ConnectionError {
            throw error
        } catch {
            throw .messageRefused("The \(type(of: message))", error)
        }
    }

    /// Waits until there is room to send. Another sender may use the room first.
    ///
    /// - Throws: `ConnectionError` when nothing can be sent any more. `CancellationError` when the task is cancelled.
    public nonisolated(nonsending) func waitForRoom() async throws {
        try await transport.waitForRoom()
    }

    /// Waits until no more frames come, because the peer has ended its side or the connection is closed.
    ///
    /// - Throws: `ConnectionError` when the connection has failed. `CancellationError` when the task is cancelled.
    public func waitUntilEnded() async throws {
        if let error = try await inputEnded.wait() { throw error }
    }

    /// Ends the handler's input, writes what was accepted, and closes. Returns at once.
    public func close() {
        transport.close()
    }

    private func offer(_ head: UnsafeRawBufferPointer, _ rest: UnsafeRawBufferPointer) throws(ConnectionError) {
        guard try transport.offerNow(head, rest) else {
            throw ConnectionError(
                code: .sendQueueFull,
                message: "The peer has not made room for what was sent before. Wait for it with waitForRoom()."
            )
        }
    }
}

extension FrameWriter {
    /// Writes a message as a frame.
    ///
    /// - Throws: as `write(_:)` of a payload does, and `messageRefused` when the message cannot be encoded.
    public mutating func write(_ message: some DelimitedMessage) throws(ConnectionError) {
        do {
            try message.withDelimitedBytes(partial: false) { frame in
                guard case .value(_, let prefixLength) = Varint.decode(frame) else {
                    throw FramingError.malformedPrefix
                }
                try write(frame: frame, payloadLength: frame.count - prefixLength)
            }
        } catch let error as ConnectionError {
            throw error
        } catch {
            throw .messageRefused("The \(type(of: message))", error)
        }
    }
}

extension ConnectionError {
    fileprivate static func messageRefused(_ subject: String, _ cause: any Error) -> ConnectionError {
        ConnectionError(
            code: .messageRefused,
            message: "\(subject) was not sent; the connection goes on.",
            cause: cause
        )
    }
}
