public import LifelineMessages
public import LifelineWellKnownTypes

extension Google_Protobuf_FieldMask {
    /// A mask with the name of each field of a message type.
    public init<M: Message>(allFieldsOf: M.Type) {
        self.init()
        paths = RepeatedField(M._table.fields.indices.map { M._table.fieldName(at: $0) })
    }

    /// A mask with the names of the fields of a message type that have these numbers.
    ///
    /// - Throws: `MessageError`: `unknownField` for a number that no field has.
    public init<M: Message>(fieldNumbers: [Int], of: M.Type) throws(MessageError) {
        self.init()
        for number in fieldNumbers {
            guard let index = M._table.fieldIndex(number: number) else {
                throw MessageError(
                    code: .unknownField,
                    message: "\(M.protoMessageName) has no field with the number \(number)."
                )
            }
            paths.append(M._table.fieldName(at: index))
        }
    }

    /// Adds a path to a field of a message type. See ``isValid(for:)``.
    ///
    /// - Throws: `MessageError`: `unknownField` for a path without a field. The mask is then unchanged.
    public mutating func addPath<M: Message>(_ path: String, of: M.Type) throws(MessageError) {
        guard FieldPaths.areValid([path], for: M._table) else {
            throw MessageError(
                code: .unknownField,
                message: "The path \(path.textFormatLiteral) leads to no field of \(M.protoMessageName)."
            )
        }
        paths.append(path)
    }

    /// The same fields, with each path once, sorted, and without paths that others cover: `a` covers `a.b`.
    public var canonical: Self { Self(FieldPaths(self)) }

    /// The fields of either mask, in canonical form.
    public func union(_ other: Self) -> Self {
        var all = self
        all.paths.append(contentsOf: other.paths)
        return all.canonical
    }

    /// The fields that are in both masks, in canonical form. For `a` and `a.b`, this is `a.b`.
    public func intersect(_ other: Self) -> Self {
        let (own, others) = (FieldPaths(self), FieldPaths(other))
        let common = own.paths.filter(others.covers) + others.paths.filter(own.covers)
        return Self(FieldPaths(common))
    }

    /// The paths that the other mask does not cover, in canonical form. The types of fields are not known, so `a.b`
    /// takes nothing from `a`.
    public func subtract(_ other: Self) -> Self {
        let others = FieldPaths(other)
        return Self(FieldPaths(FieldPaths(self).paths.filter { !others.covers($0) }))
    }

    /// Whether the mask has a field, or a message that contains it.
    public func contains(_ path: String) -> Bool { FieldPaths(self).covers(Array(path.utf8)) }

    /// Whether each path names a field of a message type. Only its last part may name a repeated field or a map.
    public func isValid<M: Message>(for: M.Type) -> Bool { FieldPaths.areValid(paths, for: M._table) }

    /// Whether each path names a field of a message type. See ``isValid(for:)``.
    public func isValid(for type: MessageDescriptor) -> Bool { FieldPaths.areValid(paths, for: type.table) }

    private init(_ paths: FieldPaths) {
        self.init()
        self.paths = RepeatedField(paths.paths.map { String(decoding: $0, as: UTF8.self) })
    }
}

/// The paths of a mask in canonical form: sorted by their parts, so that those with the same first parts are together.
struct FieldPaths {
    let paths: [[UInt8]]

    private static let dot = UInt8(ascii: ".")

    init(_ mask: Google_Protobuf_FieldMask) {
        self.init(mask.paths.map { Array($0.utf8) })
    }

    fileprivate init(_ paths: [[UInt8]]) {
        var kept: [[UInt8]] = []
        for path in paths.sorted(by: Self.precedes) where !path.isEmpty {
            if let last = kept.last, Self.covers(last, path) { continue }
            kept.append(path)
        }
        self.paths = kept
    }

    /// Whether a path, or its beginning, is among these.
    fileprivate func covers(_ path: [UInt8]) -> Bool {
        let next = paths.indices.partitioningIndex { Self.precedes(path, paths[$0]) }
        // A path that covers it is directly before it.
        return next > 0 && Self.covers(paths[next - 1], path)
    }

    private static func covers(_ path: [UInt8], _ other: [UInt8]) -> Bool {
        other.starts(with: path) && (other.count == path.count || other[path.count] == dot)
    }

    /// With the dot before all other characters.
    private static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.lexicographicallyPrecedes(right) { rank($0) < rank($1) }
    }

    private static func rank(_ byte: UInt8) -> Int { byte == dot ? 0 : Int(byte) + 1 }

    static func areValid(_ paths: RepeatedField<String>, for table: UnsafePointer<_MessageTable>) -> Bool {
        paths.allSatisfy { path in
            var type: UnsafePointer<_MessageTable>? = table
            for part in path.utf8.split(separator: dot, omittingEmptySubsequences: false) {
                guard let table = type, let index = fieldIndex(of: Array(part), in: table) else { return false }
                type = table.field(at: index).pointee.submessage
            }
            return true
        }
    }

    private static func fieldIndex(of name: [UInt8], in table: UnsafePointer<_MessageTable>) -> Int? {
        name.withUnsafeBufferPointer(table.fieldIndex)
    }
}

// MARK: - Walking along a message

extension FieldPaths {
    /// Paths with the same first parts. Their next part begins at `offset`.
    struct Branch {
        fileprivate let paths: ArraySlice<[UInt8]>
        fileprivate let offset: Int

        /// Whether a path ends here, so that everything below is in the mask.
        var isWhole: Bool { paths.first.map { $0.count < offset } ?? false }
    }

    var root: Branch { Branch(paths: paths[...], offset: 0) }
}

extension FieldPaths.Branch {
    /// The branches of the fields that the next parts name, by their indices. Other names are skipped.
    func branches(in table: UnsafePointer<_MessageTable>) -> [Int: FieldPaths.Branch] {
        var branches: [Int: FieldPaths.Branch] = [:]
        var rest = paths
        while let first = rest.first {
            let part = first[offset...].prefix { $0 != FieldPaths.dot }
            let group = rest.prefix { $0[offset...].starts(with: part) && $0.hasPart(endingAt: part.endIndex) }
            rest = rest.dropFirst(group.count)
            if let index = FieldPaths.fieldIndex(of: Array(part), in: table) {
                branches[index] = FieldPaths.Branch(paths: group, offset: part.endIndex + 1)
            }
        }
        return branches
    }
}

extension [UInt8] {
    fileprivate func hasPart(endingAt index: Int) -> Bool { index == endIndex || self[index] == UInt8(ascii: ".") }
}
