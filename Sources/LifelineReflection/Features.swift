internal import LifelineDescriptorTypes

/// The features of editions that change how messages are encoded: those of a file, and the overrides of its
/// declarations.
///
/// proto2 and proto3 are editions with features of their own.
struct Features: Hashable, Sendable {
    enum Presence { case explicit, implicit, required }

    private(set) var presence = Presence.explicit
    private(set) var isEnumClosed = false
    private(set) var isPacked = true
    private(set) var validatesUTF8 = true
    private(set) var isDelimited = false
    /// Whether messages must have a form in JSON, so that the names there must differ.
    private(set) var hasJSON = true

    /// The defaults of an edition; nil for an unknown one.
    init?(_ edition: Google_Protobuf_Edition) {
        switch edition {
        case .proto2: (isEnumClosed, isPacked, validatesUTF8, hasJSON) = (true, false, false, false)
        case .proto3: presence = .implicit
        case .edition2023, .edition2024: break
        default: return nil
        }
    }

    /// These features, with the overrides of a declaration.
    func overridden(by features: Google_Protobuf_FeatureSet) -> Features {
        var result = self
        switch features.fieldPresence {
        case .explicit: result.presence = .explicit
        case .implicit: result.presence = .implicit
        case .legacyRequired: result.presence = .required
        case .unknown: break
        }
        switch features.enumType {
        case .open: result.isEnumClosed = false
        case .closed: result.isEnumClosed = true
        case .unknown: break
        }
        switch features.repeatedFieldEncoding {
        case .packed: result.isPacked = true
        case .expanded: result.isPacked = false
        case .unknown: break
        }
        switch features.utf8Validation {
        case .verify: result.validatesUTF8 = true
        case .none: result.validatesUTF8 = false
        case .unknown: break
        }
        switch features.messageEncoding {
        case .delimited: result.isDelimited = true
        case .lengthPrefixed: result.isDelimited = false
        case .unknown: break
        }
        switch features.jsonFormat {
        case .allow: result.hasJSON = true
        case .legacyBestEffort: result.hasJSON = false
        case .unknown: break
        }
        return result
    }

    /// These features, with those that the older syntaxes declare at a field itself.
    func overridden(by field: Google_Protobuf_FieldDescriptorProto) -> Features {
        var result = self
        if field.label == .required { result.presence = .required }
        if field.proto3Optional { result.presence = .explicit }
        if field.type == .group { result.isDelimited = true }
        if field.options.hasPacked { result.isPacked = field.options.packed }
        return result
    }
}
