/// Runs `body`, and cancels it after the given time.
///
/// - Parameter duration: nil for no limit.
/// - Returns: the result of `body`; nil if the time was over first.
func within<Value: Sendable>(
    _ duration: Duration?,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value? {
    guard let duration else { return try await body() }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: duration)
            return nil
        }
        defer { group.cancelAll() }
        return try await group.next() ?? nil
    }
}
