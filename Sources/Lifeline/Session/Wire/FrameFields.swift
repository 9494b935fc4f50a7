/// The numbers of a frame that carries a message.
struct FrameFields {
    private var sequence: UInt64 = 0
    private var urgentSequence: UInt64 = 0
    private let acknowledgement: SessionAcknowledgement

    init(_ place: SessionPlace?, _ acknowledgement: SessionAcknowledgement) {
        self.acknowledgement = acknowledgement
        switch place?.lane {
        case .ordinary: sequence = place?.sequence ?? 0
        case .urgent: urgentSequence = place?.sequence ?? 0
        case nil: break
        }
    }

    var length: Int {
        [UInt8].fieldLength(1, sequence) + [UInt8].fieldLength(2, acknowledgement.ordinary)
            + [UInt8].fieldLength(12, urgentSequence) + [UInt8].fieldLength(13, acknowledgement.urgent)
    }

    func append(to span: inout OutputSpan<UInt8>) {
        span.appendField(1, sequence)
        span.appendField(2, acknowledgement.ordinary)
        span.appendField(12, urgentSequence)
        span.appendField(13, acknowledgement.urgent)
    }
}
