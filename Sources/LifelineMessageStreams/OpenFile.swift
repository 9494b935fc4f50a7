internal import Glibc

/// A file that this process has open.
struct OpenFile: ~Copyable {
    private let descriptor: CInt
    /// For errors.
    private let name: String
    private let isOwned: Bool

    /// Somebody else's, which stays open.
    init(descriptor: CInt) {
        self.descriptor = descriptor
        name = "descriptor \(descriptor)"
        isOwned = false
    }

    init(path: String, flags: CInt) throws(FileError) {
        name = path
        isOwned = true
        descriptor = open(path, flags | O_CLOEXEC, 0o666)
        if descriptor < 0 { throw FileError("Cannot open \(path)") }
    }

    deinit {
        if isOwned, descriptor >= 0 { Glibc.close(descriptor) }
    }

    /// Reads what there is, or waits for some; nothing at the end.
    func read(atMost length: Int) throws(FileError) -> [UInt8] {
        var failure: FileError?
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { memory, count in
            while true {
                let result = Glibc.read(descriptor, memory.baseAddress, length)
                if result >= 0 { return count = result }
                if errno != EINTR { return failure = FileError("Cannot read \(name)") }
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Writes all of `bytes`.
    func write(_ bytes: [UInt8]) throws(FileError) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + written, $0.count - written) }
            if count >= 0 {
                written += count
            } else if errno != EINTR {
                throw FileError("Cannot write to \(name)")
            }
        }
    }
}
