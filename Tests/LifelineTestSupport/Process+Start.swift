package import Foundation
internal import NIOConcurrencyHelpers

/// Held while pipes are made and processes are started, so that no child gets what belongs to another.
///
/// Foundation does not mark its pipes, nor the sockets that report the end of a process, to be closed by exec. Instead,
/// it closes in each child the descriptors that are open when it starts the child. A descriptor that another thread
/// opens after that stays open in the child. Waiting for the end of such a pipe, or of that other process, then also
/// waits for the end of the child.
private let starts = NIOLock()

extension Pipe {
    /// A pipe that only the intended processes inherit.
    package static func make() -> Pipe { starts.withLock { Pipe() } }
}

extension Process {
    /// Runs it while no other process is being started.
    package func start() throws { try starts.withLock { try run() } }
}
