internal import CLifelineTesting
internal import LifelineCore

/// Connects the C library and Swift's runtime to the world that this thread runs.
struct WorldClock {
    private let world: UnsafeMutablePointer<lifeline_world>

    /// 2030-01-01, 00:00 UTC, in nanoseconds since 1970.
    private static let startDate: Int64 = 1_893_456_000 * 1_000_000_000

    init() {
        world = .allocate(capacity: 1)
        world.initialize(to: lifeline_world())
    }

    /// The world that this thread runs.
    static var context: UnsafeMutableRawPointer? { lifeline_world_context() }

    /// Runs a job that has no executor of its own, as the global executor would.
    ///
    /// A task without an executor switches to the global one at calls of asynchronous functions. If it ran elsewhere,
    /// each such switch would enqueue it again. Debug builds have more such switches than release builds, so the two
    /// would play different stories.
    static func run(_ job: UnownedJob) { lifeline_run_job(unsafeBitCast(job, to: UnsafeMutableRawPointer.self)) }

    /// Call it on the thread that will run the world.
    func enter(_ owner: World) {
        world.pointee = lifeline_world(
            context: Unmanaged.passUnretained(owner).toOpaque(),
            now: owner.simulation.now.nanoseconds,
            uptime: owner.simulation.now.nanoseconds,
            start_date: WorldClock.startDate,
            enqueue: { context, job in
                guard let context, let job else { return }
                let world = Unmanaged<World>.fromOpaque(context).takeUnretainedValue()
                world.schedule(unsafeBitCast(job, to: UnownedJob.self), on: nil)
            },
            call_at: { context, time, countsUptime, function, argument in
                guard let context, let function else { return }
                let world = Unmanaged<World>.fromOpaque(context).takeUnretainedValue()
                if countsUptime, let process = world.current {
                    process.schedule(atUptime: .nanoseconds(time)) { function(argument) }
                } else {
                    world.schedule(at: MonotonicTime(nanoseconds: time), as: world.current) { function(argument) }
                }
            },
            fill_with_random_bytes: { context, bytes, count in
                guard let context, let bytes else { return }
                let world = Unmanaged<World>.fromOpaque(context).takeUnretainedValue()
                let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: count)
                for start in stride(from: 0, to: count, by: 8) {
                    withUnsafeBytes(of: world.simulation.random.next().littleEndian) { number in
                        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[start..<min(start + 8, count)])
                        part.copyMemory(from: UnsafeRawBufferPointer(rebasing: number[..<part.count]))
                    }
                }
            }
        )
        lifeline_set_world(world)
    }

    /// - Parameter uptime: the time for which the machine of the running program has been awake.
    func set(to time: MonotonicTime, uptime: Duration) {
        (world.pointee.now, world.pointee.uptime) = (time.nanoseconds, uptime.saturatedNanoseconds)
    }

    /// Moves the date, and no other clock.
    func moveDate(by step: Duration) { world.pointee.start_date += step.saturatedNanoseconds }

    /// The thread runs no world any more. The clock is not used again.
    func leave() {
        lifeline_set_world(nil)
        world.deallocate()
    }
}
