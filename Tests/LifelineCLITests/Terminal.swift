import Foundation

/// A pseudo-terminal on which a test types and reads.
final class Terminal: Sendable {
    /// The path with which a command opens the terminal.
    let path: String
    private let keyboard: FileHandle

    init() throws {
        // ioctl_tty(2). Glibc's functions for this are hidden from Swift.
        let (unlock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
        let descriptor = open("/dev/ptmx", O_RDWR | O_NOCTTY | Int32(O_CLOEXEC))
        var (lock, number) = (CInt(0), CUnsignedInt(0))
        guard descriptor >= 0, ioctl(descriptor, unlock, &lock) == 0, ioctl(descriptor, getNumber, &number) == 0 else {
            throw POSIXError(.init(rawValue: errno) ?? .ENODEV)
        }
        path = "/dev/pts/\(number)"
        keyboard = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Waits for the next output, on a thread that may block.
    func read() async -> String {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [keyboard] in
                continuation.resume(returning: String(decoding: keyboard.availableData, as: UTF8.self))
            }
        }
    }

    func type(_ text: String) throws { try keyboard.write(contentsOf: Data(text.utf8)) }
}
