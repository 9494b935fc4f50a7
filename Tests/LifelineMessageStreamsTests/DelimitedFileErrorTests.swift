internal import Dispatch
internal import Glibc
internal import LifelineCore
internal import LifelineMessageStreams
internal import LifelineMessages
internal import LifelineTestSupport
internal import Synchronization
internal import Testing

@Suite struct DelimitedFileErrorTests {
    @Test func aFolderCannotBeRead() throws {
        var reader = try DelimitedMessageReader(of: RawMessage.self, path: "/tmp")
        for _ in 0..<2 {
            let error = streamError { _ = try reader.next() }
            #expect((error?.cause as? FileError)?.number == EISDIR)
            #expect(error?.description == "Message 0, at byte 0: Cannot read /tmp: Is a directory.")
        }
    }

    @Test func aReaderThatHasFailedReadsNoMore() throws {
        try withPipe(O_NONBLOCK) { readEnd, writeEnd in
            var reader = DelimitedMessageReader(of: RawMessage.self, descriptor: readEnd)
            #expect(write(writeEnd, [0] as [UInt8], 1) == 1)
            let first = try reader.next()
            #expect(first != nil)
            for _ in 0..<2 {
                for isBatch in [false, true] {
                    let error = streamError {
                        if isBatch { _ = try reader.nextBatch() } else { _ = try reader.next() }
                    }
                    #expect((error?.cause as? FileError)?.number == EAGAIN)
                    #expect(error?.messageIndex == 1)
                    #expect(error?.byteOffset == 1)
                }
                #expect(write(writeEnd, [0] as [UInt8], 1) == 1)
            }
        }
    }

    @Test func aWriterThatHasFailedFailsAgain() throws {
        var writer = try DelimitedMessageWriter(path: "/dev/full")
        try writer.write(RawMessage(bytes: [1]))
        func check(_ error: DelimitedStreamError?) {
            #expect((error?.cause as? FileError)?.number == ENOSPC)
            #expect(error?.messageIndex == 1)
            #expect(error?.byteOffset == 2)
        }
        check(streamError { try writer.flush() })
        check(streamError { try writer.flush() })
        check(streamError { try writer.write(RawMessage(bytes: [2])) })
        check(streamError { try writer.write(Unencodable()) })
        #expect(writer.messageCount == 1)
        do throws(DelimitedStreamError) {
            try writer.close()
            Issue.record("Closing has not failed.")
        } catch {
            check(error)
        }
    }

    /// Bytes after half of a message would be read as the rest of it.
    @Test func aWriterThatHasFailedWritesNoMore() throws {
        try withPipe(O_NONBLOCK) { readEnd, writeEnd in
            var drained = [UInt8](repeating: 0, count: 1 << 20)
            do {
                var writer = DelimitedMessageWriter(descriptor: writeEnd)
                let long = RawMessage(bytes: [UInt8](repeating: 1, count: 200_000))
                let error = streamError { try writer.write(long) }
                #expect((error?.cause as? FileError)?.number == EAGAIN)
                let count = read(readEnd, &drained, drained.count)
                #expect((1..<200_000).contains(count))
                let again = streamError { try writer.write(RawMessage(bytes: [2])) }
                #expect((again?.cause as? FileError)?.number == EAGAIN)
            }
            #expect(read(readEnd, &drained, drained.count) == -1)
        }
    }

    @Test func aPipeThatIsNotReadIsAnErrorWhereItsSignalIsIgnored() async {
        await #expect(processExitsWith: .success) {
            signal(SIGPIPE, SIG_IGN)
            try withPipe { readEnd, writeEnd in
                close(readEnd)
                var writer = DelimitedMessageWriter(descriptor: writeEnd)
                try writer.write(RawMessage(bytes: [1]))
                let error = streamError { try writer.flush() }
                #expect((error?.cause as? FileError)?.number == EPIPE)
            }
        }
        await #expect(processExitsWith: .signal(SIGPIPE)) {
            try withPipe { readEnd, writeEnd in
                close(readEnd)
                var writer = DelimitedMessageWriter(descriptor: writeEnd)
                try writer.write(RawMessage(bytes: [1]))
                try writer.flush()
            }
        }
    }

    /// Signals interrupt its calls before and after the pipe has taken a part of the bytes.
    @Test func aWriterThatIsInterruptedGoesOn() async {
        await #expect(processExitsWith: .success) {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in handledSignals.add(1, ordering: .relaxed) }
            sigaction(SIGUSR1, &action, nil)
            // Threads of Dispatch, which tasks run on, block signals.
            var signals = sigset_t()
            sigaddset(&signals, SIGUSR1)
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            var ends: [CInt] = [0, 0]
            try #require(pipe(&ends) == 0)
            let (readEnd, length) = (ends[0], 1 << 20)
            let (writer, statusOfWriter) = (pthread_self(), statusPathOfThisThread())
            let reading = DispatchSemaphore(value: 0)
            // Used again after the semaphore.
            nonisolated(unsafe) var received: [RawMessage] = []
            DispatchQueue.global().async {
                var decoder = DelimitedMessageDecoder(of: RawMessage.self)
                var bytes = [UInt8](repeating: 0, count: 5_000)
                while received.isEmpty {
                    // The first signal interrupts a call after a part of its bytes, the second one a call before any of
                    // its bytes.
                    for _ in 0..<2 {
                        waitUntilAsleep(statusOfWriter)
                        let count = handledSignals.load(ordering: .relaxed)
                        pthread_kill(writer, SIGUSR1)
                        while handledSignals.load(ordering: .relaxed) == count { sched_yield() }
                    }
                    let count = read(readEnd, &bytes, bytes.count)
                    guard count > 0, (try? decoder.decode(bytes[..<count], into: &received)) != nil else { break }
                }
                reading.signal()
            }
            var messages = DelimitedMessageWriter(descriptor: ends[1])
            try messages.write(RawMessage(bytes: [UInt8](repeating: 1, count: length)))
            try messages.close()
            close(ends[1])
            reading.wait()
            #expect(received.map(\.byteCount) == [length])
        }
    }

    /// The test closes the descriptor, because closing does not fail on the file systems here.
    @Test func anErrorOfClosingIsThrown() async {
        await #expect(processExitsWith: .success) {
            try await withTemporaryPath("closed") { path in
                var writer = try DelimitedMessageWriter(path: path)
                try writer.write(RawMessage(bytes: [1]))
                try writer.flush()
                let descriptor = try #require((0..<100).first { leads($0, to: path) })
                close(descriptor)
                do throws(DelimitedStreamError) {
                    try writer.close()
                    Issue.record("Closing has not failed.")
                } catch {
                    #expect(error.messageIndex == 1)
                    let description = "Cannot close \(path): Bad file descriptor."
                    #expect((error.cause as? FileError)?.description == description)
                }
            }
        }
    }
}

private let handledSignals = Atomic(0)

/// The file that shows whether the calling thread sleeps.
private func statusPathOfThisThread() -> String {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/thread-self", &target, target.count)
    let thread = target.prefix(max(count, 0)).map(UInt8.init(bitPattern:))
    return "/proc/\(String(decoding: thread, as: UTF8.self))/stat"
}

/// Waits until a thread sleeps: here, until the pipe is full or everything is written.
private func waitUntilAsleep(_ statusPath: String) {
    while true {
        var status = [CChar](repeating: 0, count: 512)
        guard let file = fopen(statusPath, "r") else { return }
        fgets(&status, CInt(status.count), file)
        fclose(file)
        // The state follows the name of the thread, which is in parentheses.
        let state = status.lastIndex(of: CChar(UInt8(ascii: ")"))).map { status[$0 + 2] }
        if state == CChar(UInt8(ascii: "S")) { return }
        sched_yield()
    }
}

/// Runs `body` with the ends of a pipe, which are closed afterwards.
///
/// - Parameter flags: `O_NONBLOCK`, or none.
private func withPipe(_ flags: CInt = 0, _ body: (_ readEnd: CInt, _ writeEnd: CInt) throws -> Void) throws {
    var ends: [CInt] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    for end in ends { try #require(fcntl(end, F_SETFL, flags) == 0) }
    try body(ends[0], ends[1])
}

/// Whether a descriptor of this process refers to a file.
private func leads(_ descriptor: CInt, to path: String) -> Bool {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/fd/\(descriptor)", &target, target.count)
    return count >= 0 && target[..<count].elementsEqual(path.utf8.map { CChar(bitPattern: $0) })
}
