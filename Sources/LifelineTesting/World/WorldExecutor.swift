/// Runs the tasks of a process, or of the story itself, as events of the simulation.
///
/// Unchecked: other threads may call `enqueue`, which keeps jobs for the world's thread. Only that thread uses the
/// rest.
final class WorldExecutor: TaskExecutor, @unchecked Sendable {
    private weak var world: World?
    /// Nil for the story.
    let process: WorldProcess?

    init(world: World?, process: WorldProcess?) { (self.world, self.process) = (world, process) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        guard let world else { return }
        guard world.isCurrent else { return world.enqueueFromOutside(job, on: self) }
        world.schedule(job, on: self)
    }
}
