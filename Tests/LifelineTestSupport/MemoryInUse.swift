internal import Glibc

/// The bytes that malloc has handed out to all threads of this process; nil if this is unknown, as under sanitizers.
///
/// Glibc's Swift module lacks `malloc_info`, so it is looked up by name.
package func allocatedByteCount() -> Int? {
    typealias MallocInfo = @convention(c) (CInt, UnsafeMutablePointer<FILE>) -> CInt
    guard let symbol = dlsym(nil, "malloc_info") else { return nil }
    let report = unsafeBitCast(symbol, to: MallocInfo.self)
    var (start, count): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
    guard let file = open_memstream(&start, &count) else { return nil }
    let status = report(0, file)
    fclose(file)
    defer { free(start) }
    guard status == 0, let start else { return nil }
    let text = String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
    // The totals follow those of the last arena.
    guard let totals = text.split(separator: "</heap>").last else { return nil }
    func size(_ tag: String) -> Int {
        guard let line = totals.split(separator: "\n").first(where: { $0.hasPrefix(tag) }),
            let value = line.split(separator: "size=\"").last?.prefix(while: \.isNumber)
        else { return 0 }
        return Int(value) ?? 0
    }
    return size("<system type=\"current\"") + size("<total type=\"mmap\"") - size("<total type=\"fast\"")
        - size("<total type=\"rest\"")
}
