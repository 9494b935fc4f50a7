internal import Glibc

/// What changes when a file is written or replaced.
///
/// Asked of the system itself: Foundation's attributes have other types where a program links all of it, and times alone do
/// not tell files apart that were written within one tick of the kernel's clock (some milliseconds).
struct FileStamp: Equatable, Sendable {
    private let device: UInt
    private let file: UInt
    private let size: Int
    /// When its content, and when anything of it was changed, in seconds and nanoseconds.
    private let times: [Int]

    /// Nil when there is no such file. Links are followed: files of certificates are often replaced by leading a link to others.
    init?(_ path: String) {
        var information = stat()
        guard stat(path, &information) == 0 else { return nil }
        device = UInt(information.st_dev)
        file = UInt(information.st_ino)
        size = Int(information.st_size)
        times = [information.st_mtim, information.st_ctim].flatMap { [$0.tv_sec, $0.tv_nsec] }
    }
}
