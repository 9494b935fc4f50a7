public import LifelineMessages
public import LifelineWellKnownTypes

/// How fields of a mask are merged.
public struct FieldMaskMergeOptions: Hashable, Sendable {
    /// Whether a submessage in the mask replaces the one in the target. By default, they are merged.
    public var replacesMessages = false
    /// Whether the elements of a repeated field or map in the mask replace those in the target. By default, they are
    /// added.
    public var replacesRepeatedFields = false

    /// Makes options with the default values.
    public init() {}
}

extension Message {
    /// Clears all fields that are not in a mask. A mask without paths keeps all. Unknown fields stay.
    public mutating func trim(keeping mask: Google_Protobuf_FieldMask) {
        var content = TableMessage(self)
        // Another reference to the memory would make each change a copy.
        self = Self()
        content.trim(keeping: mask)
        self = content.message(as: Self.self)
    }

    /// Merges the fields of a mask from another message: submessages are merged, elements are added, and other fields
    /// are set to their values there, or cleared. Paths without a field are skipped.
    ///
    /// - Throws: `MessageError` if the fields are nested more than 1,000 deep. The message is then unchanged.
    public mutating func merge(
        from source: Self,
        fieldMask: Google_Protobuf_FieldMask,
        options: FieldMaskMergeOptions = FieldMaskMergeOptions()
    ) throws(MessageError) {
        var content = TableMessage(self)
        try content.merge(from: TableMessage(source), fieldMask: fieldMask, options: options)
        self = content.message(as: Self.self)
    }
}

extension TableMessage {
    mutating func trim(keeping mask: Google_Protobuf_FieldMask) {
        // A mask whose paths are all empty does have paths, and keeps nothing.
        if mask.paths.isEmpty { return }
        trim(keeping: FieldPaths(mask).root, removesUnknownFields: false)
    }

    mutating func merge(
        from source: TableMessage,
        fieldMask: Google_Protobuf_FieldMask,
        options: FieldMaskMergeOptions
    ) throws(MessageError) {
        let paths = FieldPaths(fieldMask)
        if paths.paths.isEmpty { return }
        var part = source
        part.trim(keeping: paths.root, removesUnknownFields: true)
        var merged = self
        merged.makeRoom(for: source, paths.root, options)
        let bytes = try part.serializedBytes(partial: true)
        try withContiguousBytes(of: bytes) { (bytes) throws(MessageError) in
            try merged.merge(serializedBytes: bytes, partial: true, options: part.optionsForCopy)
        }
        self = merged
    }

    private mutating func trim(keeping branch: FieldPaths.Branch, removesUnknownFields: Bool) {
        let kept = branch.branches(in: table)
        for index in table.fields.indices {
            let field = table.field(at: index)
            guard isPresent(field) else { continue }
            guard let branch = kept[index], branch.isWhole || field.pointee.submessage != nil else {
                clear(field)
                continue
            }
            if branch.isWhole { continue }
            withMutableMessage(of: field) { $0.trim(keeping: branch, removesUnknownFields: removesUnknownFields) }
        }
        if removesUnknownFields { self.removeUnknownFields() }
    }

    /// Clears the fields that merging the fields of a mask from `source` has to replace.
    private mutating func makeRoom(
        for source: TableMessage,
        _ branch: FieldPaths.Branch,
        _ options: FieldMaskMergeOptions
    ) {
        for (index, branch) in branch.branches(in: table) {
            let field = table.field(at: index)
            guard isPresent(field) else { continue }
            if !branch.isWhole {
                guard field.pointee.submessage != nil else { continue }
                let inner = source.message(of: field)
                withMutableMessage(of: field) { $0.makeRoom(for: inner, branch, options) }
            } else if field.pointee.isRepeated {
                if options.replacesRepeatedFields { clear(field) }
            } else if field.pointee.submessage != nil {
                if options.replacesMessages { clear(field) }
            } else if !source.isPresent(field) {
                clear(field)
            }
        }
    }
}
