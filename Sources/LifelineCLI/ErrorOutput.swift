internal import Dispatch
internal import Glibc
internal import Synchronization

/// Standard error, for many writers of which none ever waits: a thread of its own writes what they said, and drops
/// lines where nobody reads it.
final class ErrorOutput: Sendable {
    private struct State {
        /// 256 KiB: some thousand lines, which a reader that pauses for a moment misses nothing of.
        var lines = LineQueue(capacity: 256 << 10)
        var isWriting = false
    }

    static let standard = ErrorOutput(descriptor: STDERR_FILENO)

    private let descriptor: Int32
    private let queue = DispatchQueue(label: "lifeline.error-output")
    private let state = Mutex(State())

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    func write(_ text: String) {
        let begins = state.withLock { state in
            state.lines.append(text)
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { queue.async { self.writeAll() } }
    }

    /// Waits until everything is written, for so long at most. For the end of the process.
    func flush(within timeout: DispatchTimeInterval = .seconds(1)) {
        let done = DispatchSemaphore(value: 0)
        queue.async { done.signal() }
        _ = done.wait(timeout: .now() + timeout)
    }

    private func writeAll() {
        while true {
            let bytes = state.withLock { state in
                let bytes = state.lines.take()
                state.isWriting = !bytes.isEmpty
                return bytes
            }
            if bytes.isEmpty { return }
            // When that fails there is nowhere left to say so.
            try? writeBlocking(bytes, to: descriptor)
        }
    }
}
