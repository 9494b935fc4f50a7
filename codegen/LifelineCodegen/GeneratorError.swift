internal import SwiftProtobuf

/// The reason why nothing can be generated: what is wrong, where, and how to fix it.
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
