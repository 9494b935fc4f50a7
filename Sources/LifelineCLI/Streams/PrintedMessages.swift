internal import LifelineCore
internal import LifelineMessages

/// A message that cannot be decoded.
struct BadMessage: Error, CustomStringConvertible {
    /// Its place in a stream or on a connection, in words.
    let place: String
    let error: MessageError

    var description: String {
        "Cannot decode \(place). \(error.words) Is --type right? --skip-bad leaves such messages out."
    }
}

/// Makes text from encoded messages until there are enough, and counts those that cannot be decoded.
struct PrintedMessages {
    /// The number of bytes to write at once. The text of a message may be many times as long as its encoding.
    static let batchLength = 256 << 10

    private struct Report: Encodable {
        let received: Int
        let leftOut: Int
    }

    private let form: PrintedForm
    private let maximumCount: Int
    private let skipsBadMessages: Bool
    private var count = 0
    private var badCount = 0
    private var progress: Progress

    init(_ form: PrintedForm, maximumCount: Int, skipsBadMessages: Bool, progress: Progress) {
        self.form = form
        self.maximumCount = maximumCount
        self.skipsBadMessages = skipsBadMessages
        self.progress = progress
    }

    var isDone: Bool { count >= maximumCount }

    /// Appends the printed form of a message.
    ///
    /// - Parameter place: its place in words.
    /// - Throws: `BadMessage`, unless such messages are left out.
    mutating func append(
        _ payload: UnsafeRawBufferPointer,
        at place: @autoclosure () -> String,
        to text: inout [UInt8]
    ) throws(BadMessage) {
        do throws(MessageError) {
            try form.append(payload, to: &text)
            count += 1
        } catch {
            guard skipsBadMessages else { throw BadMessage(place: place(), error: error) }
            badCount += 1
            writeErrorLine("lifeline: left out \(place()): \(error.words.escaped())")
        }
    }

    mutating func reportProgress() { progress.report(count: count) }

    /// Reports the result.
    func reportEnd() {
        progress.finish(count: count)
        if badCount > 0 {
            let all = count + badCount
            writeErrorLine("lifeline: left out \(badCount) of \(all) messages, which cannot be decoded")
        }
    }

    /// Reports the result to a program.
    func reportEndAsJSON() throws {
        try writeErrorLine(json: Report(received: count, leftOut: badCount))
    }
}
