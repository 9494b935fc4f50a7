import LifelineCore
import Testing

@Suite struct FrameWriterTests {
    private static let lengths = [0, 1, 127, 128, 0, 300, 16_383, 16_384, 5, 2_097_152, 0]
    private static let expected = lengths.flatMap { frame($0) }

    /// The frames and their order are the same, whether or not they fit into the memory.
    @Test(arguments: [0, 1, 4, 5, 6, 130, 140, 600, 16_700, 40_000, expected.count, expected.count + 5])
    func framesFollowOneAnother(room: Int) throws {
        let bytes = try written(room: room) { writer throws(ConnectionError) in
            for length in Self.lengths { try write(payload(length), to: &writer) }
        }
        #expect(bytes.bytes == Self.expected)
        #expect(bytes.count == Self.lengths.count)
    }

    @Test func aPayloadOverTheLimitIsRefusedAndLeavesNoTrace() throws {
        for room in [0, 1000] {
            let bytes = try written(room: room, limit: 10) { writer throws(ConnectionError) in
                try write(payload(10), to: &writer)
                let error = refusal { () throws(ConnectionError) in try write(payload(11), to: &writer) }
                #expect(error?.code == .messageRefused)
                #expect((error?.cause as? FramingError)?.code == .payloadTooLarge)
                try write(payload(3), to: &writer)
            }
            #expect(bytes.bytes == frame(10) + frame(3))
            #expect(bytes.count == 2)
        }
    }

    @Test func nothingIsTakenWhenSendingHasFinished() throws {
        let bytes = try written(room: 100, isOpen: false) { writer throws(ConnectionError) in
            for length in [0, 5] {
                let error = refusal { () throws(ConnectionError) in try write(payload(length), to: &writer) }
                #expect(error?.code == .sendingFinished)
            }
        }
        #expect(bytes.bytes.isEmpty)
        #expect(bytes.count == 0)
    }

    // MARK: -

    private func written(
        room: Int,
        limit: Int = 4 << 20,
        isOpen: Bool = true,
        _ body: (inout FrameWriter) throws(ConnectionError) -> Void
    ) throws(ConnectionError) -> (bytes: [UInt8], count: Int) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 1)
        defer { memory.deallocate() }
        var writer = FrameWriter(memory, maximumFrameLength: limit, isOpen: isOpen)
        try body(&writer)
        return (memory.prefix(writer.byteCount) + writer.takeOverflow(), writer.count)
    }

    private func write(_ payload: [UInt8], to writer: inout FrameWriter) throws(ConnectionError) {
        var result = Result<Void, ConnectionError>.success(())
        payload.withUnsafeBytes { bytes in
            do throws(ConnectionError) { try writer.write(bytes) } catch { result = .failure(error) }
        }
        try result.get()
    }

    private func refusal(of body: () throws(ConnectionError) -> Void) -> ConnectionError? {
        do {
            try body()
            return nil
        } catch {
            return error
        }
    }
}
