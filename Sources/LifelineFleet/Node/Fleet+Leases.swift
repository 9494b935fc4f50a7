internal import LifelineCore
internal import LifelineRuntime
internal import Logging

extension Fleet {
    /// Renews this node's lease until the task is cancelled, and then ends it.
    func keepLease() async {
        let duration = max(configuration.leaseDuration, .milliseconds(30))
        while !Task.isCancelled {
            // Two renewals in a row may fail.
            let next = clock.now + duration / 3
            do {
                try await engine.renewLease(of: nodeName, for: duration)
            } catch {
                if Task.isCancelled { break }
                logger.warning("The lease of this node cannot be renewed", metadata: ["error": "\(error)"])
            }
            await clock.race(until: next) { await self.leaseBell.wait() }
        }
        await engine.endLease(of: nodeName)
    }
}
