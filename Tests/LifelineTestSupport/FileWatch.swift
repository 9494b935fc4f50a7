internal import Foundation

/// Reports writes to files.
package final class FileWatch: Sendable {
    /// The descriptor of inotify(7). The reading thread needs it as long as this object.
    private final class Notifications: Sendable {
        let descriptor: Int32

        init() throws {
            descriptor = inotify_init1(Int32(IN_CLOEXEC))
            guard descriptor >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EMFILE) }
        }

        deinit { close(descriptor) }
    }

    private let notifications: Notifications
    private let watches: [Int32]
    private let changes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameter paths: existing files.
    package init(_ paths: [String]) throws {
        notifications = try Notifications()
        watches = try paths.map { [notifications] path in
            let watch = inotify_add_watch(notifications.descriptor, path, UInt32(IN_MODIFY))
            guard watch >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .ENOENT) }
            return watch
        }
        Thread.detachNewThread { [notifications, changes, count = paths.count] in
            Self.pass(notifications, of: count, to: changes.continuation)
        }
    }

    deinit {
        for watch in watches { inotify_rm_watch(notifications.descriptor, watch) }
    }

    /// Makes `wait(until:)` check again.
    package func lookAgain() { changes.continuation.yield() }

    /// Calls `look` now and after each change, until it returns a value. For one task at a time.
    ///
    /// - Throws: what `look` throws; `CancellationError` when the task is cancelled first.
    package func wait<Found>(for look: () throws -> Found?) async throws -> Found {
        if let found = try look() { return found }
        for await _ in changes.stream {
            if let found = try look() { return found }
        }
        throw CancellationError()
    }

    /// Reports all changes until no file is watched any more.
    private static func pass(
        _ notifications: Notifications,
        of count: Int,
        to changes: AsyncStream<Void>.Continuation
    ) {
        var left = count
        var buffer = [UInt32](repeating: 0, count: 1024)
        while left > 0 {
            let length = buffer.withUnsafeMutableBytes { read(notifications.descriptor, $0.baseAddress, $0.count) }
            guard length > 0 else { return }
            // Each event has the watch, the kind, a cookie and the length of a name. Events of files have no name.
            left -= stride(from: 0, to: length / 4, by: 4).count { buffer[$0 + 1] & UInt32(IN_IGNORED) != 0 }
            changes.yield()
        }
    }
}
