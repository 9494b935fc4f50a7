internal import Dispatch
internal import Glibc
internal import Synchronization

/// Standard error for many writers that never wait: a separate thread writes their lines, and drops lines when standard
/// error is not read.
final class ErrorOutput: Sendable {
    private struct State {
        /// 256 KiB, some thousand lines: enough for a reader that pauses for a moment.
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

    /// Waits until everything is written, but at most this long. For the end of the process.
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
            // A failure here cannot be reported anywhere.
            try? writeBlocking(bytes, to: descriptor)
        }
    }
}
