internal import Glibc

/// A file that this process has open.
struct OpenFile: ~Copyable {
    /// Below 0 after `close()`.
    private var descriptor: CInt
    /// For errors.
    private let name: String
    private let isOwned: Bool

    /// A descriptor that the caller owns and closes.
    init(descriptor: CInt) {
        self.descriptor = descriptor
        name = "descriptor \(descriptor)"
        isOwned = false
    }

    init(path: String, flags: CInt) throws(FileError) {
        let result = try retryingOnInterrupt("Cannot open \(path)") { Int(open(path, flags | O_CLOEXEC, 0o666)) }
        descriptor = CInt(result)
        name = path
        isOwned = true
    }

    deinit {
        if isOwned, descriptor >= 0 { Glibc.close(descriptor) }
    }

    /// Closes the file if it is owned.
    mutating func close() throws(FileError) {
        guard isOwned, descriptor >= 0 else { return }
        let result = Glibc.close(descriptor)
        let number = errno
        descriptor = -1
        // Linux has closed the descriptor when a signal interrupts the call: trying again could close another file.
        if result < 0, number != EINTR { throw FileError("Cannot close \(name)", number: number) }
    }

    /// Waits until there is something to read. Returns at most `length` bytes; none at the end of the file.
    func read(atMost length: Int) throws(FileError) -> [UInt8] {
        var failure: FileError?
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { memory, count in
            do throws(FileError) {
                count = try retryingOnInterrupt("Cannot read \(name)") {
                    Glibc.read(descriptor, memory.baseAddress, length)
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Writes all of `bytes`.
    func write(_ bytes: [UInt8]) throws(FileError) {
        var written = 0
        while written < bytes.count {
            let count = try retryingOnInterrupt("Cannot write to \(name)") {
                bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + written, $0.count - written) }
            }
            // No file accepts nothing without an error: another try would not end.
            if count == 0 { throw FileError("Cannot write to \(name)", number: EIO) }
            written += count
        }
    }
}

/// Makes a system call again while signals interrupt it.
///
/// - Parameter action: what failed, as in "Cannot read a.binpb".
private func retryingOnInterrupt(
    _ action: @autoclosure () -> String,
    _ call: () -> Int
) throws(FileError) -> Int {
    while true {
        let result = call()
        let number = errno
        if result >= 0 { return result }
        if number != EINTR { throw FileError(action(), number: number) }
    }
}
