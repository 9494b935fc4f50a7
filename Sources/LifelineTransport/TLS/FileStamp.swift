internal import FoundationEssentials

/// What changes when a file is written or replaced.
struct FileStamp: Equatable, Sendable {
    private let file: UInt64?
    private let size: UInt64?
    private let modified: Date?

    /// Nil when there is no such file.
    init?(_ path: String) {
        // Files of certificates are often replaced by leading a link to others.
        let target = URL(filePath: path).resolvingSymlinksInPath().path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: target) else { return nil }
        file = FileStamp.number(attributes[.systemFileNumber])
        size = FileStamp.number(attributes[.size])
        modified = attributes[.modificationDate] as? Date
    }

    private static func number(_ attribute: Any?) -> UInt64? {
        (attribute as? any BinaryInteger).map { UInt64(truncatingIfNeeded: $0) }
    }
}
