internal import Dispatch
internal import Glibc
internal import LifelineMessageStreams
internal import LifelineMessages
internal import Testing

@Suite struct DelimitedFileErrorTests {
    /// Signals interrupt its calls before and after the pipe has taken a part of the bytes.
    @Test func aWriterThatIsInterruptedGoesOn() async {
        await #expect(processExitsWith: .success) {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in }
            sigaction(SIGUSR1, &action, nil)
            // Threads of Dispatch, which tasks run on, block signals.
            var signals = sigset_t()
            sigaddset(&signals, SIGUSR1)
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            var ends: [CInt] = [0, 0]
            try #require(pipe(&ends) == 0)
            let (readEnd, length, writing) = (ends[0], 1 << 20, pthread_self())
            let reading = DispatchSemaphore(value: 0)
            // Used again after the semaphore.
            nonisolated(unsafe) var received: [RawMessage] = []
            DispatchQueue.global().async {
                var decoder = DelimitedMessageDecoder(of: RawMessage.self)
                var bytes = [UInt8](repeating: 0, count: 5_000)
                while received.isEmpty {
                    usleep(20)
                    pthread_kill(writing, SIGUSR1)
                    let count = read(readEnd, &bytes, bytes.count)
                    guard count > 0, (try? decoder.decode(bytes[..<count], into: &received)) != nil else { break }
                }
                reading.signal()
            }
            var writer = DelimitedMessageWriter(descriptor: ends[1])
            try writer.write(RawMessage(bytes: [UInt8](repeating: 1, count: length)))
            try writer.close()
            close(ends[1])
            reading.wait()
            #expect(received.map(\.byteCount) == [length])
        }
    }
}
