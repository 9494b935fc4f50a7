internal import NIOCore

/// The executors of the loops of a group.
struct LoopExecutors: Sendable {
    private let executors: [ObjectIdentifier: LoopExecutor]

    init(_ group: any EventLoopGroup) {
        executors = Dictionary(
            group.makeIterator().map { (ObjectIdentifier($0), LoopExecutor($0)) },
            uniquingKeysWith: { first, _ in first }
        )
    }

    /// The executor of a loop of the group.
    subscript(loop: any EventLoop) -> LoopExecutor? { executors[ObjectIdentifier(loop)] }
}
