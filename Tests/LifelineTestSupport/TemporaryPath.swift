internal import Glibc

/// Runs `body` with a path in a new folder, which is removed afterwards.
package func withTemporaryPath<Result>(
    _ name: String = "socket",
    _ body: nonisolated(nonsending) (String) async throws -> Result
) async throws -> Result {
    var template = Array("/tmp/lifeline-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw RawSocket.Failure(call: "mkdtemp", code: errno) }
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let path = folder + "/" + name
    defer {
        // A database has files beside it.
        for name in names(in: folder) { unlink(folder + "/" + name) }
        rmdir(folder)
    }
    return try await body(path)
}

/// The names of the files in a folder.
private func names(in folder: String) -> [String] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        names.append(
            withUnsafePointer(to: &entry.pointee.d_name) {
                String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
            }
        )
    }
    return names.filter { $0 != "." && $0 != ".." }
}

/// Whether a file of any kind is at `path`.
package func fileExists(at path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
}

/// Makes an ordinary file.
package func makeFile(at path: String) {
    let descriptor = open(path, O_CREAT | O_WRONLY, 0o600)
    if descriptor >= 0 { close(descriptor) }
}

/// Removes a file.
package func removeFile(at path: String) {
    unlink(path)
}

/// Sets a file's time back to 1970: two files made within a tick of the kernel's clock have the same time.
package func makeOld(_ path: String) {
    let times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
    utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW)
}

/// Writes an ordinary file, in place of what it held.
package func writeFile(_ bytes: [UInt8], to path: String) {
    let descriptor = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0o600)
    if descriptor < 0 { return }
    _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    close(descriptor)
}
