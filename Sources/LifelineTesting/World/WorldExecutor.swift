/// Runs the tasks of a process, or those of the story itself, as events of the simulation.
///
/// Unchecked: other threads may `enqueue`, which leaves jobs to be fetched. Only the world's thread uses the rest.
final class WorldExecutor: TaskExecutor, @unchecked Sendable {
    private weak var world: World?
    /// Nil: the story's.
    let process: WorldProcess?

    init(world: World?, process: WorldProcess?) { (self.world, self.process) = (world, process) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        guard let world else { return }
        guard world.isCurrent else { return world.enqueueFromOutside(job, on: self) }
        world.schedule(job, on: self)
    }
}
