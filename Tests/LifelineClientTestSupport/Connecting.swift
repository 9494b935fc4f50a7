package import Lifeline

package let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)

/// Runs `body`, which must throw a `ConnectionError`, and returns that.
package func connectionError(_ body: () async throws -> some Any) async -> ConnectionError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? ConnectionError
    }
}
