import Foundation
import Lifeline
import LifelineProtos
import NIOConcurrencyHelpers
import Testing

@testable import LifelineTesting

/// The guarantees of a world about time, tasks, randomness and failures.
@Suite(.timeLimit(.minutes(10))) struct WorldRuleTests {
    /// A story with everything that could make its runs differ.
    @Sendable private static func restless(_ world: World) async throws {
        let sum = NIOLockedValueBox(0)
        world.note("\(UInt64.random(in: .min ... .max)) \(UUID()) \([1, 2, 3, 4].shuffled()) \(Date())")
        world.note("\(Set((0..<20).map { "\($0)" }))")
        await withTaskGroup { group in
            for number in 0..<20 {
                group.addTask {
                    try? await Task.sleep(for: .microseconds(Int64.random(in: 0..<50)))
                    sum.withLockedValue { $0 = $0 &* 31 &+ number }
                    await Task.detached { sum.withLockedValue { $0 = $0 &* 31 &+ number } }.value
                    world.note("\(number) is done")
                }
            }
        }
        world.note("\(sum.withLockedValue { $0 })")
    }

    private func play(
        _ seed: UInt64,
        faults: Set<Int>? = nil,
        _ story: @escaping @Sendable (World) async throws -> Void
    ) async -> StoryRunner.Played {
        await StoryRunner(story: story).play(seed, faults, isTracing: true)
    }

    @Test func aSeedGivesOneStory() async {
        let first = await play(7, Self.restless)
        #expect(first.trace.count == 24)
        for _ in 0..<100 { #expect(await play(7, Self.restless).trace == first.trace) }
        #expect(await play(8, Self.restless).trace != first.trace)
    }

    /// The result is the same in debug and release builds.
    @Test func aSeedGivesOneStoryInEveryProcess() async {
        let trace = await play(1, Self.restless).trace
        #expect(trace.dropLast().last == "0.000122848 s story: -8770991744729491698")
    }

    @Test func otherThreadsKeepRealTime() async throws {
        let before = Date()
        var limits = SimulationLimits()
        limits.time = .seconds(200_000)
        try await simulate(seeds: 1...1, limits: limits) { _ in try await Task.sleep(for: .seconds(100_000)) }
        #expect(Date().timeIntervalSince(before) < 50_000)
    }

    /// As on Linux, where CLOCK_MONOTONIC stands still while the machine sleeps, and CLOCK_BOOTTIME does not.
    @Test func clocksCountSleepOrDoNot() async throws {
        try await simulate(seeds: 1...1) { world in
            let host = world.host("laptop")
            let program = host.run {
                let (start, uptimeAtStart) = (ContinuousClock.now, SuspendingClock.now)
                async let continuous: Void = Task.sleep(for: .seconds(10))
                async let suspending: Void = Task.sleep(for: .seconds(10), clock: .suspending)
                try await continuous
                let first = ContinuousClock.now - start
                try await suspending
                return (first, ContinuousClock.now - start, SuspendingClock.now - uptimeAtStart)
            }
            try await Task.sleep(for: .seconds(1))
            host.machine.sleep(for: .seconds(60))
            let (continuous, suspending, uptime) = try await program.value
            // Due during the sleep; due 9 s after it; awake for 10 s.
            let seconds = [continuous, suspending, uptime].map { Int(($0 / .seconds(1)).rounded()) }
            try world.expect(seconds == [61, 70, 10], "clocks count sleep, or do not: \(seconds)")
        }
    }

    @Test func aStoryThatWaitsForeverFails() async {
        let played = await play(1) { _ in
            await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
        }
        #expect(played.failure?.description == "Everything waits, and nothing will happen any more.")
    }

    @Test func aStoryWithoutAnEndFails() async {
        let played = await play(1) { _ in while true { try await Task.sleep(for: .seconds(1)) } }
        #expect(played.failure?.description == "The story has not ended within 600.0 seconds.")
    }

    @Test func resumingFromOutsideFails() async {
        let played = await play(1) { _ in
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume() }
            }
            try await Task.sleep(for: .seconds(1))
        }
        #expect(played.failure?.description.hasPrefix("A task came back from outside the world") == true)
    }

    @Test func conditionsAreCheckedAfterEachStep() async {
        let played = await play(1) { world in
            world.always("it is not two") { world.now < .seconds(2) }
            try await Task.sleep(for: .seconds(5))
        }
        #expect(played.failure?.description == "This held no more: it is not two")
    }

    @Test func conditionsAreCheckedAtTheEnd() async {
        let played = await play(1) { world in
            let sum = NIOLockedValueBox(0)
            world.always("it is none") { sum.withLockedValue { $0 } == 0 }
            sum.withLockedValue { $0 = 1 }
        }
        #expect(played.failure?.description == "This held no more: it is none")
    }

    @Test func aNameBelongsToOneHost() async {
        let played = await play(1) { world in
            try world.expect(world.host("a") === world.host("a"), "the same one")
            try world.expect(world.hosts.count == 1, "one")
        }
        #expect(played.failure == nil)
    }

    /// No reference keeps a world alive after its end.
    @Test func worldsAreFreed() async {
        let (world, database) = (Weak<World>(), Weak<WorldDatabase<Int>>())
        let played = await play(1) { present in
            world.object.withLockedValue { $0 = { [weak present] in present } }
            let host = present.host("a")
            let kept = host.database(1)
            database.object.withLockedValue { $0 = { [weak kept] in kept } }
            present.always("time goes on") { present.now >= .zero }
            host.serve {
                try await withClient(
                    to: Endpoint("tcp://a:7000"),
                    receiving: Sample_Room_V1_EchoReply.self,
                    sending: Sample_Room_V1_EchoRequest.self,
                    logger: present.logger
                ) { _ in
                    try await Task.sleep(for: .seconds(1_000))
                }
            }
            present.faults = .harsh
            try await Task.sleep(for: .seconds(20))
        }
        #expect(played.failure == nil)
        // The thread may be about to end.
        for _ in 0..<1_000 where world.object.withLockedValue({ $0() }) != nil { await Task.yield() }
        #expect(world.object.withLockedValue { $0() } == nil)
        #expect(database.object.withLockedValue { $0() } == nil)
    }

    @Test func aProgramThatFailsMakesTheStoryFail() async {
        let played = await play(1) { world in
            world.host("a").run { throw WorldFailure("it is broken") }
            try await Task.sleep(for: .seconds(1))
        }
        #expect(played.failure?.description == "A program on a failed: it is broken")
        let awaited = await play(1) { world in
            do { try await world.host("a").run { throw WorldFailure("it is broken") }.value } catch {}
        }
        #expect(awaited.failure == nil)
    }

    @Test func aKilledProcessDoesNothingMore() async {
        let played = await play(1) { world in
            let host = world.host("a")
            let steps = NIOLockedValueBox<[String]>([])
            let program = host.run {
                for step in 1... {
                    steps.withLockedValue { $0.append("\(step)") }
                    try await Task.sleep(for: .seconds(1))
                }
            }
            try await Task.sleep(for: .milliseconds(2_500))
            host.kill()
            await #expect(throws: ProgramKilled(host: "a")) { try await program.value }
            try await Task.sleep(for: .seconds(10))
            try world.expect(steps.withLockedValue { $0 } == ["1", "2", "3"], "\(steps.withLockedValue { $0 })")
        }
        #expect(played.failure == nil)
    }

    @Test func aServiceIsStartedAgain() async {
        let played = await play(1) { world in
            let host = world.host("a")
            let starts = NIOLockedValueBox(0)
            host.serve {
                starts.withLockedValue { $0 += 1 }
                try await Task.sleep(for: .seconds(1_000))
            }
            try await Task.sleep(for: .seconds(1))
            host.kill(restartingAfter: .seconds(3))
            try await Task.sleep(for: .seconds(2))
            try world.expect(starts.withLockedValue { $0 } == 1, "not yet")
            try await Task.sleep(for: .seconds(2))
            try world.expect(starts.withLockedValue { $0 } == 2, "now")
        }
        #expect(played.failure == nil)
    }

    @Test func aFailureIsShrunkToTheFaultsThatItNeeds() async throws {
        let error = await #expect(throws: SimulationFailure.self) {
            try await simulate(seeds: 1...50, name: "story()") { world in
                let host = world.host("a")
                host.serve { try await Task.sleep(for: .seconds(10_000)) }
                let kills = NIOLockedValueBox(0)
                host.serve {
                    let count = kills.withLockedValue { kills in
                        kills += 1
                        return kills
                    }
                    if count == 4 { world.fail("it was killed three times") }
                    try await Task.sleep(for: .seconds(10_000))
                }
                world.faults = .harsh
                try await Task.sleep(for: .seconds(100))
            }
        }
        let lines = try #require(error).description.split(separator: "\n")
        #expect(lines[0] == "it was killed three times")
        #expect(lines[1].hasPrefix("Seed "))
        #expect(lines.count { $0.contains("the process on a is killed, and started again after") } >= 3)
        let numbers = lines[2...4].compactMap { Int($0.drop { $0 == " " }.prefix { $0 != "," }) }
        let seed = try #require(error).seed
        #expect(
            lines.contains(
                "To play it again: LIFELINE_SEED=\(seed) LIFELINE_FAULTS=\(numbers.map { "\($0)" }.joined(separator: ",")) "
                    + "swift test --filter story"
            )
        )
    }

    /// A story with fewer faults may fail in another way, which does not explain this failure.
    @Test func aShrunkStoryFailsInTheSameWay() async {
        let error = await #expect(throws: SimulationFailure.self) {
            try await simulate(seeds: 1...1, name: "story()") { world in
                let starts = NIOLockedValueBox(0)
                world.host("a").serve {
                    starts.withLockedValue { $0 += 1 }
                    try await Task.sleep(for: .seconds(10_000))
                }
                world.faults = .harsh
                try await Task.sleep(for: .seconds(100))
                let count = starts.withLockedValue { $0 }
                try world.expect(count < 3, "it was started too often: \(count) times, not \(Array(1..<count))")
                try world.expect(count > 10, "it was started too seldom: \(count) times")
            }
        }
        #expect(error?.failure.description == "it was started too often: 3 times, not [1, 2]")
        #expect(error?.faults.count == 2)
    }

    @Test func failuresAreComparedByTheirWords() {
        let failure = WorldFailure("the transfer ada/8 has happened 2 times: [8, 8]")
        #expect(WorldFailure("the transfer ben/14 has happened 0 times: []").isLike(failure))
        #expect(!WorldFailure("the refund ada/8 has happened 2 times: [8, 8]").isLike(failure))
        #expect(!WorldFailure("the transfer ada/8 has happened 2 times: [8, 8]", .stuck).isLike(failure))
        #expect(!WorldFailure("").isLike(failure))
    }

    @Test func unknownHostsAreNotFound() async {
        let played = await play(1) { world in
            let failure = try await world.host("a").run {
                await #expect(throws: ConnectionError.self) {
                    try await withConnection(
                        to: Endpoint("tcp://b:7000"),
                        receiving: Sample_Room_V1_EchoReply.self,
                        sending: Sample_Room_V1_EchoRequest.self
                    ) { _ in }
                }
            }
            .value
            try world.expect(failure?.code == .connectFailed, "\(String(describing: failure))")
            try world.expect("\(failure!)".contains("The host b was not found by a. The world has a."), "\(failure!)")
        }
        #expect(played.failure == nil)
    }

    /// Connections have the real layers.
    @Test func webSocketsPass() async throws {
        try await simulate(seeds: 1...5) { world in
            world.host("server").run {
                try await withServer(
                    listeningOn: Endpoint("ws://server:8080/chat"),
                    logger: world.logger,
                    receiving: Sample_Room_V1_EchoRequest.self,
                    sending: Sample_Room_V1_EchoReply.self
                ) { connection in
                    for try await message in connection.messages {
                        try await connection.send(.with { $0.text = message.text })
                    }
                } _: {
                    try await $0.waitUntilShutDown()
                }
            }
            let texts = try await world.host("client").run {
                try await Task.sleep(for: .seconds(1))
                return try await withConnection(
                    to: Endpoint("ws://server:8080/chat"),
                    receiving: Sample_Room_V1_EchoReply.self,
                    sending: Sample_Room_V1_EchoRequest.self
                ) { connection in
                    for number in 1...100 { try await connection.send(.with { $0.text = "\(number)" }) }
                    var texts: [String] = []
                    for try await message in connection.messages {
                        texts.append(message.text)
                        if texts.count == 100 { break }
                    }
                    return texts
                }
            }
            .value
            try world.expect(texts == (1...100).map { "\($0)" }, "all come back in order")
        }
    }
}

private final class Weak<Object: AnyObject>: Sendable {
    let object = NIOLockedValueBox<@Sendable () -> Object?>({ nil })
}
