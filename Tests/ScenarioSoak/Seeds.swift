/// Runs the seeds of stories in portions, two portions at a time.
enum Seeds {
    private static let portion: UInt64 = 200

    /// - Parameters:
    ///   - run: runs a portion.
    ///   - add: adds the result of a portion. Returns whether to continue.
    static func run<Part: Sendable>(
        below count: UInt64,
        _ run: @escaping @Sendable (Range<UInt64>) async -> Part,
        add: (Part) -> Bool
    ) async {
        await withTaskGroup(of: Part.self) { group in
            var next: UInt64 = 0
            func begin() {
                guard next < count else { return }
                let seeds = next..<min(next + portion, count)
                next = seeds.upperBound
                group.addTask { await run(seeds) }
            }
            begin()
            begin()
            for await part in group where add(part) { begin() }
        }
    }
}
