internal import LifelineMessages
internal import LifelineReflection
internal import LifelineWellKnownTypes

/// An error of making a field mask.
public enum FieldMaskError: Error {
    /// The message has no field with such a path.
    case invalidPath
    /// The message has no field with such a number.
    case invalidFieldNumber
}

extension Google_Protobuf_FieldMask {
    fileprivate typealias Ordinary = LifelineWellKnownTypes.Google_Protobuf_FieldMask

    /// How the fields of a mask are merged.
    public struct MergeOptions: Sendable {
        /// Whether the elements of a repeated field replace those in the target. By default, they are added.
        public var replaceRepeatedFields = false

        /// Makes options with the default values.
        public init() {}
    }

    /// A mask with these paths, which are not checked.
    public init(protoPaths: [String]) { self = .with { $0.paths = protoPaths } }

    /// A mask with these paths, which are not checked.
    public init(protoPaths: String...) { self.init(protoPaths: protoPaths) }

    /// A mask with these paths, with the names of fields in JSON. Paths with characters other than letters, digits,
    /// points and parentheses are left out, as in swift-protobuf, so this is never nil.
    public init?(jsonPaths: String...) { self.init(protoPaths: jsonPaths.compactMap(Self.protoPath)) }

    /// The path with the names of the `.proto` file.
    private static func protoPath(_ jsonPath: String) -> String? {
        var path = ""
        for character in jsonPath.unicodeScalars {
            switch character {
            case "a"..."z", "0"..."9", ".", "(", ")": path.unicodeScalars.append(character)
            case "A"..."Z": path += "_" + character.properties.lowercaseMapping
            default: return nil
            }
        }
        return path
    }

    /// A mask with the name of each field of a message type.
    public init<M: SwiftProtobufMessage>(allFieldsOf messageType: M.Type) {
        self = Ordinary(allFieldsOf: messageType).twin()
    }

    /// A mask with the names of the fields that have these numbers.
    ///
    /// - Throws: `FieldMaskError.invalidFieldNumber` for a number that no field has.
    public init<M: SwiftProtobufMessage>(fieldNumbers: [Int], of messageType: M.Type) throws {
        do throws(MessageError) {
            self = try Ordinary(fieldNumbers: fieldNumbers, of: messageType).twin()
        } catch {
            throw FieldMaskError.invalidFieldNumber
        }
    }

    /// Adds a path.
    ///
    /// - Throws: `FieldMaskError.invalidPath` for a path that is not a field of the message type.
    public mutating func addPath<M: SwiftProtobufMessage>(_ path: String, of messageType: M.Type) throws {
        guard M.isPathValid(path) else { throw FieldMaskError.invalidPath }
        paths.append(path)
    }

    /// The same fields, with each path once, sorted, and without paths that others cover: `a` covers `a.b`.
    public var canonical: Self { ordinary.canonical.twin() }

    /// The fields of either mask, in canonical form.
    public func union(_ mask: Self) -> Self { ordinary.union(mask.ordinary).twin() }

    /// The fields that are in both masks, in canonical form.
    public func intersect(_ mask: Self) -> Self { ordinary.intersect(mask.ordinary).twin() }

    /// The paths that the other mask does not cover, in canonical form.
    public func subtract(_ mask: Self) -> Self { ordinary.subtract(mask.ordinary).twin() }

    /// Whether the mask has a field, or a message that contains it.
    public func contains(_ path: String) -> Bool { ordinary.contains(path) }

    /// Whether each path names a field of a message type.
    public func isValid<M: SwiftProtobufMessage>(for messageType: M.Type) -> Bool { ordinary.isValid(for: messageType) }

    fileprivate var ordinary: Ordinary { twin() }
}

extension SwiftProtobufMessage {
    /// Whether a path names a field of this type.
    public static func isPathValid(_ path: String) -> Bool {
        Google_Protobuf_FieldMask(protoPaths: [path]).isValid(for: Self.self)
    }

    /// Merges the fields of a mask from another message. Paths without a field are skipped.
    public mutating func merge(
        from source: Self,
        fieldMask: Google_Protobuf_FieldMask,
        mergeOption: Google_Protobuf_FieldMask.MergeOptions = .init()
    ) throws {
        var options = FieldMaskMergeOptions()
        options.replacesRepeatedFields = mergeOption.replaceRepeatedFields
        try merge(from: source, fieldMask: fieldMask.ordinary, options: options)
    }

    /// Clears all fields that are not in a mask. A mask without paths keeps all, and so does one with a path without a
    /// field.
    ///
    /// - Returns: Whether the message has changed.
    @discardableResult public mutating func trim(keeping fieldMask: Google_Protobuf_FieldMask) -> Bool {
        guard !fieldMask.paths.isEmpty, fieldMask.isValid(for: Self.self) else { return false }
        let original = self
        trim(keeping: fieldMask.ordinary)
        return self != original
    }
}
