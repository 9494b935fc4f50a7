import Lifeline
import LifelineProtos
import LifelineTesting
import NIOConcurrencyHelpers
import Testing

private typealias Payment = Sample_Room_V1_EchoRequest

/// Databases of programs that are killed, and of disks that fail.
@Suite(.timeLimit(.minutes(10))) struct WorldDatabaseTests {
    private func serveBank(on host: WorldHost, _ ledger: WorldDatabase<[UInt64]>, in world: World) {
        host.serve {
            var configuration = SessionServerConfiguration()
            configuration.store = ledger
            try await withSessionServer(
                listeningOn: Endpoint("tcp://bank:7000"),
                configuration: configuration,
                services: [Bank(ledger: ledger)],
                logger: world.logger
            ) {
                try await $0.waitUntilShutDown()
            }
        }
    }

    /// Both sides are killed again and again; each durable payment is booked once, in order.
    @Test func durablePaymentsAreBookedOnce() async throws {
        try await simulate(seeds: 1...20) { world in
            let (bank, shop) = (world.host("bank"), world.host("shop"))
            let ledger = bank.database([UInt64]())
            let sold = shop.database(UInt64(0))
            serveBank(on: bank, ledger, in: world)
            shop.serve {
                var configuration = SessionClientConfiguration()
                configuration.store = sold
                configuration.client.backoff.maximumAttempts = nil
                try await withSessionClient(
                    to: Endpoint("tcp://bank:7000"),
                    configuration: configuration,
                    logger: world.logger
                ) { session in
                    while sold.content < 100 {
                        try await Task.sleep(for: .milliseconds(300))
                        let number = try await sold.transaction {
                            $0 += 1
                            return $0
                        }
                        // A kill between the transaction and the push loses the payment. None is doubled.
                        try await session.push("Bank/Pay", Payment.with { $0.number = number }, delivery: .durable)
                    }
                    try await Task.sleep(for: .seconds(10_000))
                }
            }
            world.faults = .harsh
            try await world.until("everything was sold", within: .seconds(500)) { sold.content == 100 }
            world.faults = Faults()
            try await world.until("the last payment arrives", within: .seconds(90)) { ledger.content.last == 100 }
            let booked = ledger.content
            try world.expect(booked == Set(booked).sorted(), "each is booked once, in order: \(booked)")
            try world.expect(booked.count >= 90, "few are missing: \(booked)")
        }
    }

    @Test func transactionsAreAtomic() async throws {
        try await simulate(seeds: 1...50) { world in
            let host = world.host("a")
            let database = host.database([Int]())
            host.serve {
                for number in 1... {
                    try await database.transaction { numbers in
                        numbers.append(number)
                        numbers.append(number)
                    }
                }
            }
            for _ in 1...5 {
                try await Task.sleep(for: .milliseconds(Int64.random(in: 1...20)))
                host.kill(restartingAfter: .milliseconds(1))
                let count = database.content.count
                try world.expect(count.isMultiple(of: 2), "whole transactions only")
                try await Task.sleep(for: .microseconds(500))
                try world.expect(database.content.count == count, "nobody writes while nothing runs")
            }
            try world.expect(database.content.count > 5, "some were committed")
        }
    }

    /// Waiting transactions belong to the killed process, and end only with the story.
    @Test func aKillStopsTransactions() async throws {
        try await simulate(seeds: 1...20) { world in
            let host = world.host("a")
            let database = host.database([Int]())
            for number in 1...10 { host.run { try? await database.transaction { $0.append(number) } } }
            try await Task.sleep(for: .milliseconds(8))
            host.kill()
            let numbers = database.content
            try world.expect(numbers.count < 10, "not all were made")
            host.run { try await database.transaction { $0.append(11) } }
            try await Task.sleep(for: .seconds(1))
            try world.expect(database.content == numbers + [11], "the next process goes on with it")
        }
    }

    @Test func aTransactionThatThrowsChangesNothing() async throws {
        try await simulate(seeds: 1...3) { world in
            let database = world.host("a").database(1)
            do {
                try await database.transaction { number in
                    number = 2
                    throw CancellationError()
                }
            } catch is CancellationError {}
            try world.expect(database.content == 1, "nothing has changed")
            try await database.transaction { $0 = 3 }
            try world.expect(database.content == 3, "the next one is made")
        }
    }

    private static var failingDisks: Faults {
        var faults = Faults()
        (faults.slowDisks, faults.fullDisks, faults.failedCommits) = (.seconds(5), .seconds(5), .seconds(2))
        return faults
    }

    /// The outcomes of commits, and the longest duration.
    private struct Outcomes {
        var made = 0
        var full = 0
        var failed = 0
        var failedAndMade = 0
        var longest = Duration.zero
    }

    @Test func disksFailInAllWays() async throws {
        let all = NIOLockedValueBox(Outcomes())
        try await simulate(seeds: 1...10) { world in
            let database = world.host("a").database(0)
            world.faults = Self.failingDisks
            try await world.host("a").run {
                var outcomes = Outcomes()
                while world.now < .seconds(60) {
                    try await Task.sleep(for: .milliseconds(100))
                    let (before, start) = (database.content, ContinuousClock.now)
                    do {
                        try await database.transaction { $0 += 1 }
                        outcomes.made += 1
                        try world.expect(database.content == before + 1, "it is made")
                    } catch let error as StoreError {
                        let isMade = database.content == before + 1
                        switch error.code {
                        case .full:
                            outcomes.full += 1
                            try world.expect(!isMade, "what finds no room changes nothing")
                        case .failed where isMade: outcomes.failedAndMade += 1
                        case .failed: outcomes.failed += 1
                        default: throw error
                        }
                    }
                    outcomes.longest = max(outcomes.longest, ContinuousClock.now - start)
                }
                try world.expect(database.transactionCount == database.content, "each is counted")
                try world.expect(outcomes.made > 100, "most are made")
                all.withLockedValue { all in
                    all.full += outcomes.full
                    all.failed += outcomes.failed
                    all.failedAndMade += outcomes.failedAndMade
                    all.longest = max(all.longest, outcomes.longest)
                }
            }
            .value
            // No commit fails after the last full disk has room again.
            world.faults = Faults()
            try await Task.sleep(for: .seconds(5))
            for _ in 1...100 { try await database.transaction { $0 += 1 } }
        }
        let outcomes = all.withLockedValue { $0 }
        #expect(outcomes.full > 0 && outcomes.failed > 0 && outcomes.failedAndMade > 0, "\(outcomes)")
        #expect(outcomes.longest > .milliseconds(500) && outcomes.longest < .milliseconds(1_010), "\(outcomes)")
    }

    /// A retry doubles a commit that was made although it failed. A single fault causes that.
    @Test func aCommitThatFailedButWasMadeIsFound() async throws {
        let error = await #expect(throws: SimulationFailure.self) {
            try await simulate(seeds: 1...20, name: "story()") { world in
                let database = world.host("a").database([Int]())
                var faults = Self.failingDisks
                (faults.outages, faults.pauses) = (.seconds(2), .seconds(4))
                world.faults = faults
                try await world.host("a").run {
                    for number in 1...50 {
                        while true {
                            try await Task.sleep(for: .milliseconds(200))
                            do { try await database.transaction { $0.append(number) } } catch is StoreError { continue }
                            break
                        }
                    }
                }
                .value
                try world.expect(database.content == Array(1...50), "each is there once: \(database.content)")
            }
        }
        let faults = try #require(error).faults
        #expect(faults.count == 1)
        let text = try #require(faults.first)
        #expect(text.hasSuffix(": the next commit on a fails, and happens nevertheless"), "\(text)")
        #expect(error?.trace.contains { $0.hasSuffix(" a: a commit fails: failed") } == true)
    }

    /// A session survives failures of its store.
    @Test func durablePaymentsSurviveDisksThatFail() async throws {
        let (failures, sessionFailures) = (NIOLockedValueBox(0), NIOLockedValueBox(0))
        try await simulate(seeds: 1...20) { world in
            let (bank, shop) = (world.host("bank"), world.host("shop"))
            let ledger = bank.database([UInt64]())
            let sold = shop.database(UInt64(0))
            serveBank(on: bank, ledger, in: world)
            var faults = Self.failingDisks
            (faults.kills, faults.cuts) = (.seconds(10), .seconds(5))
            world.faults = faults
            shop.serve {
                var configuration = SessionClientConfiguration()
                configuration.store = sold
                configuration.client.backoff.maximumAttempts = nil
                try await withSessionClient(
                    to: Endpoint("tcp://bank:7000"),
                    configuration: configuration,
                    logger: world.logger
                ) { session in
                    while sold.content < 50 {
                        try await Task.sleep(for: .milliseconds(300))
                        do {
                            let number = try await sold.transaction {
                                $0 += 1
                                return $0
                            }
                            try await session.push("Bank/Pay", Payment.with { $0.number = number }, delivery: .durable)
                        } catch is StoreError {
                            failures.withLockedValue { $0 += 1 }
                        } catch let error as SessionError where error.code == .storeFailed {
                            sessionFailures.withLockedValue { $0 += 1 }
                        }
                    }
                    try await Task.sleep(for: .seconds(10_000))
                }
            }
            try await world.until("everything was sold", within: .seconds(200)) { sold.content == 50 }
            world.faults = Faults()
            try await Task.sleep(for: .seconds(90))
            let booked = ledger.content
            try world.expect(booked == Set(booked).sorted(), "each is booked once at most, in order: \(booked)")
            try world.expect(booked.count >= 20, "many arrive: \(booked)")
        }
        #expect(failures.withLockedValue { $0 } > 0)
        #expect(sessionFailures.withLockedValue { $0 } > 0)
    }
}

private struct Bank: SessionService {
    let ledger: WorldDatabase<[UInt64]>

    var methods: [SessionMethod] {
        [
            .push("Bank/Pay") { (payment: Payment, context) async throws in
                try await ledger.transaction(marking: context.durableMessage) { $0.append(payment.number) }
            }
        ]
    }
}
