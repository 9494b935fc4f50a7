internal import LifelineCore
internal import LifelineTransport

/// Sends the frames of a connection.
@usableFromInline struct FrameOutlet: Sendable {
    let transport: any TransportConnection
    let encoder: FrameEncoder

    /// The place in line of a frame that waits to be accepted.
    @usableFromInline struct PlaceInLine {
        fileprivate let pending: PendingSend
    }

    /// Throws `FramingError` when a frame is over the limit or malformed.
    @usableFromInline func check(_ frame: UnsafeRawBufferPointer) throws {
        try encoder.checkFrame(frame)
    }

    /// Offers a frame. Returns its place in line when it has to wait.
    ///
    /// - Throws: `FramingError` when it is over the limit; `ConnectionError` when the connection takes no more frames.
    @usableFromInline func offer(_ frame: UnsafeRawBufferPointer) throws -> PlaceInLine? {
        try check(frame)
        return try transport.offer(frame).map { PlaceInLine(pending: $0) }
    }

    /// Allows the offered frames to be written now, because more frames follow.
    @usableFromInline func writeEarly() { transport.writeEarly() }

    /// Waits until the frame is accepted.
    @usableFromInline func wait(in place: PlaceInLine, isolation: isolated (any Actor)?) async throws {
        try await transport.wait(for: place.pending)
    }
}
