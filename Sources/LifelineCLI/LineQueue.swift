/// What waits to be written to a stream that may take nothing for a while: at most so many bytes. What comes when there
/// is no room is dropped and counted, and a line in its place says so.
struct LineQueue: Sendable {
    private let capacity: Int
    private var bytes: [UInt8] = []
    private var droppedCount = 0

    /// - Parameter capacity: the number of bytes that may wait.
    init(capacity: Int) {
        self.capacity = capacity
    }

    /// Adds a text, or drops it. Behind what was dropped nothing is added before the next `take`, so that the line that
    /// counts stands in the place of what it counts.
    mutating func append(_ text: String) {
        let count = text.utf8.count
        if droppedCount > 0 || count > capacity - bytes.count {
            droppedCount += 1
        } else {
            bytes += text.utf8
        }
    }

    /// Takes out what waits, with the line that counts what was dropped.
    mutating func take() -> [UInt8] {
        defer { (bytes, droppedCount) = ([], 0) }
        if droppedCount == 0 { return bytes }
        let lines = droppedCount == 1 ? "1 line was" : "\(droppedCount) lines were"
        return bytes + Array("lifeline: \(lines) left out here, as standard error was not read\n".utf8)
    }
}
