/// The limits of one side of a session.
package struct SessionTerms: Equatable, Sendable {
    /// The least credit that a side may begin with, in bytes.
    package static let smallestCredit = 64 << 10
    /// The shortest limit of frames that a side may have, in bytes.
    static let smallestFrameLimit = 4 << 10
    /// The longest frame, in bytes, of a side that does not specify it.
    package static let usualFrameLength = 4 << 20

    /// The most frames of a lane that the other side may send without an acknowledgement.
    package var window: SessionWindow
    /// The credit with which each pushed method and each stream begins, in bytes.
    package var credit: Int
    /// The most requests of the other side that may wait for their responses at once.
    package var maximumRequestCount: Int
    /// The longest frame, in bytes without the length prefix.
    package var maximumFrameLength: Int

    package init(window: SessionWindow, credit: Int, maximumRequestCount: Int, maximumFrameLength: Int) {
        self.window = window
        self.credit = credit
        self.maximumRequestCount = maximumRequestCount
        self.maximumFrameLength = maximumFrameLength
    }

    func append(field: UInt32, to bytes: inout [UInt8]) {
        FieldWriter.appendMessage(field, to: &bytes) { terms in
            FieldWriter.appendField(1, UInt64(UInt32(clamping: window.frameCount)), to: &terms)
            FieldWriter.appendField(2, UInt64(window.byteCount), to: &terms)
            FieldWriter.appendField(3, UInt64(clamping: credit), to: &terms)
            FieldWriter.appendField(4, UInt64(UInt32(clamping: maximumRequestCount)), to: &terms)
            FieldWriter.appendField(5, UInt64(UInt32(clamping: maximumFrameLength)), to: &terms)
        }
    }

    /// The received numbers. A message that occurs several times is merged, field by field.
    struct Numbers {
        private var windowFrames: UInt32 = 0
        private var windowBytes: UInt64 = 0
        private var credit: UInt64 = 0
        private var maximumRequests: UInt32 = 0
        private var maximumFrame: UInt32 = 0

        init() {}

        mutating func merge(_ bytes: UnsafeRawBufferPointer) throws(SessionViolation) {
            var reader = FieldReader(bytes)
            while let tag = reader.next() {
                switch tag {
                case .varint(1): windowFrames = reader.uint32()
                case .varint(2): windowBytes = reader.varint()
                case .varint(3): credit = reader.varint()
                case .varint(4): maximumRequests = reader.uint32()
                case .varint(5): maximumFrame = reader.uint32()
                default: reader.skip(tag)
                }
            }
            try reader.finish()
        }

        func terms() throws(SessionViolation) -> SessionTerms {
            let window = SessionWindow(frameCount: Int(windowFrames), byteCount: Int(clamping: windowBytes))
            guard window.frameCount > 0, window.byteCount >= SessionWindow.smallestByteCount else { throw .emptyWindow }
            guard credit >= UInt64(SessionTerms.smallestCredit) else {
                throw .smallCredit
            }
            guard maximumFrame == 0 || maximumFrame >= SessionTerms.smallestFrameLimit else {
                throw .frameLimit(Int(maximumFrame))
            }
            return SessionTerms(
                window: window,
                credit: Int(clamping: credit),
                maximumRequestCount: Int(max(maximumRequests, 1)),
                maximumFrameLength: maximumFrame == 0 ? SessionTerms.usualFrameLength : Int(maximumFrame)
            )
        }
    }
}

/// The store of a side that keeps durable messages.
package struct StoreOpening: Equatable, Sendable {
    package let id: SessionStoreID
    /// No more durable messages of this side with numbers up to this one come.
    package let floor: UInt64

    package init(id: SessionStoreID, floor: UInt64) { (self.id, self.floor) = (id, floor) }

    /// Reads a store; nil if its id is malformed.
    ///
    /// - Throws: `.undecodable`
    init?(parsing bytes: UnsafeRawBufferPointer) throws(SessionViolation) {
        var (id, floor) = (UnsafeRawBufferPointer(start: nil, count: 0), UInt64(0))
        var reader = FieldReader(bytes)
        while let tag = reader.next() {
            switch tag {
            case .delimited(1): id = reader.bytesValue()
            case .varint(2): floor = reader.varint()
            default: reader.skip(tag)
            }
        }
        try reader.finish()
        guard let id = SessionStoreID(bytes: id) else { return nil }
        if floor > UInt64(Int64.max) { throw .durableNumber }
        self.init(id: id, floor: floor)
    }

    func append(field: UInt32, to bytes: inout [UInt8]) {
        FieldWriter.appendMessage(field, to: &bytes) { store in
            FieldWriter.appendField(1, id.bytes, to: &store)
            FieldWriter.appendField(2, floor, to: &store)
        }
    }
}

/// The progress of a side with the other side's frames when it opens a connection.
package struct OpeningProgress: Equatable, Sendable {
    /// Every ordinary frame up to this place was processed.
    package var processed: UInt64
    /// Every ordinary frame up to this place was received.
    package var received: UInt64
    /// Every urgent frame up to this place was processed.
    package var urgent: UInt64

    package init(processed: UInt64 = 0, received: UInt64 = 0, urgent: UInt64 = 0) {
        self.processed = processed
        self.received = received
        self.urgent = urgent
    }

    /// Takes the present fields of a progress message; the others keep their values.
    mutating func merge(_ bytes: UnsafeRawBufferPointer) throws(SessionViolation) {
        var reader = FieldReader(bytes)
        while let tag = reader.next() {
            switch tag {
            case .varint(1): processed = reader.varint()
            case .varint(2): received = reader.varint()
            case .varint(3): urgent = reader.varint()
            default: reader.skip(tag)
            }
        }
        try reader.finish()
    }

    func append(field: UInt32, to bytes: inout [UInt8]) {
        guard self != OpeningProgress() else { return }
        FieldWriter.appendMessage(field, to: &bytes) { progress in
            FieldWriter.appendField(1, processed, to: &progress)
            FieldWriter.appendField(2, received, to: &progress)
            FieldWriter.appendField(3, urgent, to: &progress)
        }
    }
}
