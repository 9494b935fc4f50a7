package import Lifeline
package import LifelineCore
package import LifelineTesting

/// The user of a real `Client` on a host of a world. It sends, receives, and records events.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
package final class ClientUser: @unchecked Sendable {
    package typealias Client = Lifeline.Client<RawMessage, RawMessage>

    package struct Configuration: Sendable {
        package var client = ClientConfiguration()
        /// Whether the client pings a silent server. It answers pings in any case.
        package var asks = true

        package init() {}
    }

    /// The outcome of a send.
    package enum SendEnd: Sendable, Hashable {
        case accepted(connection: UInt64?)
        case dropped
        case cancelled
        case failed(ConnectionError.Code)
    }

    package struct Send {
        package let payload: [UInt8]
        package let policy: SendPolicy
        /// The time of the call of `send`; nil while it waits for an earlier call of its task.
        package internal(set) var offeredAt: MonotonicTime?
        /// The outcome; nil while the send waits.
        package internal(set) var end: SendEnd?
        /// The task that sends it.
        fileprivate var program: Program<Void>?
    }

    package let world: World
    package let host: WorldHost
    package let configuration: Configuration
    /// Every step of the client, in order.
    package private(set) var events: [ClientEvent] = []
    /// The sends. Their numbers, from 1 on, are in their messages.
    package private(set) var sends: [Send] = []
    /// The payloads of the received messages.
    package private(set) var received: [[UInt8]] = []
    /// Whether `Client.run()` has returned.
    package private(set) var hasRun = false
    /// Whether the sequence of steps has ended.
    package private(set) var haveEventsEnded = false
    /// Whether the sequence of messages has ended.
    package private(set) var haveMessagesEnded = false
    /// The calls of `Client.close()` that have not returned.
    package private(set) var openCloseCount = 0

    /// Checks the reported events.
    weak var witness: Witness?
    private var made: Client?
    private var running: Program<Void>?
    private var reader: Program<Void>?

    private init(on host: WorldHost, in world: World, _ configuration: Configuration) {
        (self.host, self.world, self.configuration) = (host, world, configuration)
    }

    /// Makes the user of a client that connects to a host.
    package static func make(
        on host: WorldHost,
        in world: World,
        connectingTo server: String,
        configuration: Configuration = Configuration()
    ) async throws -> ClientUser {
        let user = ClientUser(on: host, in: world, configuration)
        let endpoint = try Endpoint("tcp://\(server):7000")
        user.made = try await host.run {
            Client(
                to: endpoint,
                configuration: configuration.client,
                receiving: RawMessage.self,
                sending: RawMessage.self,
                heartbeat: user.heartbeat,
                logger: world.logger
            )
        }.value
        return user
    }

    package var client: Client { made! }
    package var machine: SimulatedHost { host.machine }
    package var transitions: [ConnectionTransition] { events.map(\.transition) }
    /// The number of messages that each ended connection has lost.
    package var undelivered: [Int] { events.compactMap(\.undeliveredMessageCount) }
    package var waitingSendCount: Int { sends.count { $0.end == nil } }
    package var state: ConnectionState { client.state }
    package var now: MonotonicTime { host.machine.simulation.now }

    private var heartbeat: HeartbeatMessages<RawMessage, RawMessage> {
        let ping: @Sendable (UInt64) -> RawMessage = { [weak self] number in
            self?.note("ping \(number)")
            self?.witness?.pinged()
            return RawMessage(bytes: SimulatedMessage(kind: .ping, number: number).bytes)
        }
        return HeartbeatMessages(
            ping: configuration.asks ? ping : nil,
            answer: { message in
                guard let message = message.withUnsafeBytes({ SimulatedMessage($0) }), message.kind == .ping else {
                    return nil
                }
                return RawMessage(bytes: SimulatedMessage(kind: .pong, number: message.number).bytes)
            },
            isAnswer: { $0.withUnsafeBytes { SimulatedMessage($0)?.kind == .pong } }
        )
    }

    private func note(_ text: @autoclosure () -> String) {
        if host.machine.simulation.isTracing { world.note(text()) }
    }

    // MARK: Running

    /// Runs the client, and reads its steps and messages.
    package func start() {
        host.run { [self] in
            // Made before the client runs, to get the first step.
            var steps = client.events.makeAsyncIterator()
            running = host.run { [self] in
                defer { hasRun = true }
                try await client.run()
            }
            while let event = await steps.next() {
                events.append(event)
                note("\(event)")
                witness?.received(event)
            }
            haveEventsEnded = true
        }
        read()
    }

    /// Whether it reads messages. If not, the server has to wait.
    package var reads = true {
        didSet {
            if reads == oldValue { return }
            note(reads ? "reads again" : "reads no more")
            readsSince = now
            if reads { read() } else { reader?.cancel() }
        }
    }
    /// The time at which it last started or stopped reading messages.
    package private(set) var readsSince = MonotonicTime(nanoseconds: 0)

    /// Reads messages in a loop, after the previous loop has ended.
    private func read() {
        let before = reader
        reader = host.run { [self] in
            try? await before?.value
            if haveMessagesEnded { return }
            for try await message in client.messages {
                received.append(message.withUnsafeBytes { SimulatedMessage($0)?.payload ?? [] })
            }
            haveMessagesEnded = !Task.isCancelled
        }
    }

    /// Cancels the task that runs the client.
    package func cancel() {
        host.run { [self] in
            witness?.endRequested()
            note("cancels")
            running?.cancel()
        }
    }

    package func close() {
        host.run { [self] in
            witness?.endRequested()
            note("closes")
            openCloseCount += 1
            await client.close()
            openCloseCount -= 1
        }
    }

    package func reconnect() {
        host.run { [self] in
            witness?.wantsReconnection()
            note("reconnects")
            client.reconnect()
        }
    }

    // MARK: Sending

    /// Sends messages from one task, one after the other. Returns the number of the first one.
    @discardableResult
    package func send(_ payloads: [[UInt8]], policy: SendPolicy = .wait()) -> Int {
        let numbers = sends.count + 1..<sends.count + 1 + payloads.count
        sends += payloads.map { Send(payload: $0, policy: policy) }
        let program = host.run { [self] in
            for number in numbers { await send(number) }
        }
        for number in numbers { sends[number - 1].program = program }
        return numbers.lowerBound
    }

    /// Sends a message from a task of its own. Returns its number.
    @discardableResult
    package func send(_ payload: [UInt8], policy: SendPolicy = .wait()) -> Int { send([payload], policy: policy) }

    /// Cancels the task that sends a message.
    package func cancelSend(_ number: Int) {
        host.run { [self] in
            guard number <= sends.count, sends[number - 1].end == nil else { return }
            note("cancels message \(number)")
            sends[number - 1].program?.cancel()
        }
    }

    private nonisolated(nonsending) func send(_ number: Int) async {
        let send = sends[number - 1]
        let message = SimulatedMessage(kind: .message, number: UInt64(number), payload: send.payload)
        sends[number - 1].offeredAt = now
        witness?.offered(number)
        let end: SendEnd
        do {
            let result = try await client.sendReturningConnection(
                RawMessage(bytes: message.bytes),
                policy: send.policy
            )
            end = result.outcome == .accepted ? .accepted(connection: result.connection) : .dropped
        } catch let error as ConnectionError {
            end = .failed(error.code)
        } catch {
            end = .cancelled
        }
        note("message \(number) \(end)")
        sends[number - 1].end = end
        sends[number - 1].program = nil
        witness?.ended(number, end, isCancelled: Task.isCancelled)
    }
}
