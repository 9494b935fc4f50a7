/// Lines that wait to be written to a stream that may block for a while. The bytes are limited: further lines are
/// dropped and counted, and a line in their place has the count.
struct LineQueue: Sendable {
    private let capacity: Int
    private var bytes: [UInt8] = []
    private var droppedCount = 0

    /// - Parameter capacity: the number of bytes that may wait.
    init(capacity: Int) {
        self.capacity = capacity
    }

    /// Adds a text, or drops it. After a dropped text nothing is added before the next `take`, so that the line with
    /// the count is in the right place.
    mutating func append(_ text: String) {
        let count = text.utf8.count
        if droppedCount > 0 || count > capacity - bytes.count {
            droppedCount += 1
        } else {
            bytes += text.utf8
        }
    }

    /// Removes and returns the waiting bytes, with the line that counts the dropped ones.
    mutating func take() -> [UInt8] {
        defer { (bytes, droppedCount) = ([], 0) }
        if droppedCount == 0 { return bytes }
        let lines = droppedCount == 1 ? "1 line was" : "\(droppedCount) lines were"
        return bytes + Array("lifeline: \(lines) left out here, as standard error was not read\n".utf8)
    }
}
