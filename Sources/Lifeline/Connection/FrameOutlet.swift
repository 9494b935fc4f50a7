internal import LifelineCore
internal import LifelineTransport

/// Where the frames of a connection go.
@usableFromInline struct FrameOutlet: Sendable {
    let transport: any TransportConnection
    let encoder: FrameEncoder

    /// Where a frame is in line that waits to be accepted.
    @usableFromInline struct PlaceInLine {
        fileprivate let pending: PendingSend
    }

    /// Throws `FramingError` when a frame is over the limit, or none.
    @usableFromInline func check(_ frame: UnsafeRawBufferPointer) throws {
        try encoder.checkFrame(frame)
    }

    /// Offers a frame. Returns its place where it waits.
    ///
    /// - Throws: `FramingError` when it is over the limit; `ConnectionError` when the connection takes nothing any
    ///   more.
    @usableFromInline func offer(_ frame: UnsafeRawBufferPointer) throws -> PlaceInLine? {
        try check(frame)
        return try transport.offer(frame).map { PlaceInLine(pending: $0) }
    }

    /// There is more to send behind what was offered, which may be written now.
    @usableFromInline func writeEarly() { transport.writeEarly() }

    /// Waits until the frame is accepted.
    @usableFromInline func wait(in place: PlaceInLine, isolation: isolated (any Actor)?) async throws {
        try await transport.wait(for: place.pending)
    }
}
