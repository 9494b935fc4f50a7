public import LifelineMessages
public import LifelineWellKnownTypes

extension DynamicMessage {
    /// Clears all fields that are not in a mask. A mask without paths keeps all. Unknown fields stay.
    public mutating func trim(keeping mask: Google_Protobuf_FieldMask) {
        content.trim(keeping: mask)
    }

    /// Merges the fields of a mask from another message with the same descriptor. See
    /// `Message.merge(from:fieldMask:options:)`.
    ///
    /// - Throws: `MessageError`: `typeMismatch` for a message with another descriptor, or the error of merging.
    public mutating func merge(
        from source: DynamicMessage,
        fieldMask: Google_Protobuf_FieldMask,
        options: FieldMaskMergeOptions = FieldMaskMergeOptions()
    ) throws(MessageError) {
        guard source.descriptor.table == descriptor.table else {
            throw MessageError(
                code: .typeMismatch,
                message: "A \(source.descriptor.fullName) cannot be merged into this \(descriptor.fullName)."
            )
        }
        try content.merge(from: source.content, fieldMask: fieldMask, options: options)
    }
}
