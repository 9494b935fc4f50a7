internal import FoundationEssentials

/// The attributes that change when a file is written or replaced.
struct FileStamp: Equatable, Sendable {
    private let file: String?
    private let size: String?
    /// Not enough by itself: the kernel's clock ticks every few milliseconds.
    private let modified: Date?

    /// Nil when there is no such file.
    init?(_ path: String) {
        // Files of certificates are often replaced by changing a link.
        let target = URL(filePath: path).resolvingSymlinksInPath().path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: target) else { return nil }
        file = FileStamp.text(attributes[.systemFileNumber])
        size = FileStamp.text(attributes[.size])
        modified = attributes[.modificationDate] as? Date
    }

    /// Numbers are integers here, and objects in a program that links all of Foundation.
    private static func text(_ number: Any?) -> String? {
        number.map { "\($0)" }
    }
}
