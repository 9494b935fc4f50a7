package import Foundation
internal import NIOConcurrencyHelpers

/// Held while pipes are made and processes are started, so that no child gets what belongs to another.
///
/// Foundation marks neither its pipes nor the sockets by which it learns of a process's end to be closed by exec. It
/// closes in each child what is open when it begins to start it: what another thread opens after that look stays open
/// in the child. Who waits for the end of such a pipe, or of that other process, then waits for the child's end, too.
private let starts = NIOLock()

extension Pipe {
    /// A pipe that no process gets but those that are given it.
    package static func make() -> Pipe { starts.withLock { Pipe() } }
}

extension Process {
    /// Runs it, when no other process is being started.
    package func start() throws { try starts.withLock { try run() } }
}
