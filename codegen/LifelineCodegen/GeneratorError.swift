internal import SwiftProtobuf

/// Why nothing can be generated: what is wrong, where, and what to do about it.
package struct GeneratorError: Error, Hashable, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
        self.description = description
    }

    /// The place that an error begins with: "file.proto:12", or just the file's name when protoc sent no positions.
    static func place(_ location: Google_Protobuf_SourceCodeInfo.Location?, in file: String) -> String {
        guard let line = location?.span.first else { return file }
        return "\(file):\(line + 1)"
    }
}
