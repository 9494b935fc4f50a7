import Lifeline
import LifelineProtos
import LifelineTesting
import Testing

private typealias Payment = Sample_Room_V1_EchoRequest

/// Programs whose processes are killed, and what is on their disks then.
@Suite(.timeLimit(.minutes(10))) struct WorldDatabaseTests {
    /// Both sides are killed again and again; each durable payment is booked once, in order.
    @Test func durablePaymentsAreBookedOnce() async throws {
        try await simulate(seeds: 1...20) { world in
            let (bank, shop) = (world.host("bank"), world.host("shop"))
            let ledger = bank.database([UInt64]())
            let sold = shop.database(UInt64(0))
            bank.serve {
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
                        // A kill between the two loses it: here a payment may be missing, and none is doubled.
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

    @Test func aTransactionIsThereOrNot() async throws {
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

    /// Those that wait for their turn belong to the killed process, and end with the story.
    @Test func aKillCallsTransactionsOff() async throws {
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
