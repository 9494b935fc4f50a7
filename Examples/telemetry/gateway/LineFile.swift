#if Store
internal import Foundation

/// A place in a file: between two lines.
struct FilePlace: Sendable, Equatable {
    /// The number of lines before it.
    var line = 0
    /// The number of bytes before it.
    var offset = 0
}

/// Reads a file line by line, while others append to it.
struct LineFile {
    struct LineTooLong: Error, CustomStringConvertible {
        let description: String
    }

    private static let maximumLineLength = 4096

    private let file: FileHandle
    private var unread = Data()
    /// The place behind the line that was read last.
    private(set) var place: FilePlace

    init(path: String, from place: FilePlace) throws {
        self.place = place
        file = try FileHandle(forReadingFrom: URL(filePath: path))
        try file.seek(toOffset: UInt64(place.offset))
    }

    /// Returns the next line; nil while no whole line is there.
    mutating func next() throws -> String? {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = unread[..<end]
                unread = unread[(end + 1)...]
                place.line += 1
                place.offset += line.count + 1
                return String(decoding: line, as: UTF8.self)
            }
            guard unread.count < LineFile.maximumLineLength else {
                throw LineTooLong(description: "Line \(place.line + 1) has more than \(unread.count) bytes.")
            }
            guard let chunk = try file.read(upToCount: LineFile.maximumLineLength), !chunk.isEmpty else { return nil }
            unread = Data(unread) + chunk
        }
    }
}
#endif
