import Lifeline
import LifelineWellKnownTypes
import Synchronization
import TestServices
import Testing

/// Publish and subscribe: methods with other custom options beside Lifeline's, with Empty as a reply of calls, and a
/// stream both ways in which acknowledgements answer deliveries.
@Suite(.timeLimit(.minutes(1))) struct PubSubTests {
    @Test func topicsAreMadeAndPublishedTo() async throws {
        let topics = Publisher()
        try await withSession(serving: topics) { session in
            let publisher = Test_Realistic_Pubsub_PublisherClient(session)
            let topic = try await publisher.createTopic(.with { ($0.name, $0.labels["kind"]) = ("news", "test") })
            #expect(topic.labels["kind"] == "test")
            let update = Test_Realistic_Pubsub_UpdateTopicRequest.with {
                ($0.topic.name, $0.topic.retention.seconds, $0.mask.paths) = ("news", 60, ["retention"])
            }
            #expect(try await publisher.updateTopic(update).retention.seconds == 60)
            #expect(try await publisher.listTopics(.init()).topics.map(\.name) == ["news"])

            let message = Test_Realistic_Pubsub_Message.with { $0.data = [1, 2, 3] }
            let request = Test_Realistic_Pubsub_PublishRequest.with { ($0.topic, $0.messages) = ("news", [message]) }
            #expect(try await publisher.publish(request).ids == ["1"])
            let done: Google_Protobuf_Empty = try await publisher.publishAll { stream in
                for _ in 1...100 { try await stream.send(request) }
            }
            #expect(done == .init())
            #expect(topics.messageCount == 101)
            _ = try await publisher.deleteTopic(.with { $0.name = "news" })
            #expect(try await publisher.listTopics(.init()).topics.isEmpty)
        }
    }

    @Test func messagesAreDeliveredUntilTheyAreAcknowledged() async throws {
        try await withSession(serving: Subscriber()) { session in
            let subscriber = Test_Realistic_Pubsub_SubscriberClient(session)
            let subscription = try await subscriber.createSubscription(.with { ($0.name, $0.topic) = ("mine", "news") })
            #expect(subscription.topic == "news")
            let pulled = try await subscriber.pull(.with { ($0.subscription, $0.maximum) = ("mine", 2) })
            #expect(pulled.deliveries.map(\.attempt) == [1, 1])
            _ = try await subscriber.acknowledge(
                .with { $0.acknowledgementIds = .init(pulled.deliveries.map(\.acknowledgementID)) }
            )

            let (delivered, delivery) = AsyncStream.makeStream(of: String.self)
            let received = try await subscriber.streamingPull { stream in
                try await stream.send(.with { $0.subscription = "mine" })
                for await id in delivered { try await stream.send(.with { $0.acknowledgementIds = [id] }) }
            } receive: { replies in
                var ids: [String] = []
                for try await reply in replies {
                    for item in reply.deliveries {
                        ids.append(item.acknowledgementID)
                        delivery.yield(item.acknowledgementID)
                    }
                    if ids.count == 3 { delivery.finish() }
                }
                return ids
            }
            #expect(received == ["3", "4", "5"])
        }
    }
}

private final class Publisher: Test_Realistic_Pubsub_PublisherHandler {
    private let topics = Mutex<[String: Test_Realistic_Pubsub_Topic]>([:])
    private let count = Mutex(0)

    var messageCount: Int { count.withLock { $0 } }

    func createTopic(_ request: Test_Realistic_Pubsub_Topic, context: SessionContext) -> Test_Realistic_Pubsub_Topic {
        topics.withLock { $0[request.name] = request }
        return request
    }

    func updateTopic(
        _ request: Test_Realistic_Pubsub_UpdateTopicRequest,
        context: SessionContext
    ) throws -> Test_Realistic_Pubsub_Topic {
        guard request.mask.paths == ["retention"] else { throw SessionStatus(.invalidArgument) }
        return try topics.withLock { topics in
            guard var topic = topics[request.topic.name] else { throw SessionStatus(.notFound) }
            topic.retention = request.topic.retention
            topics[topic.name] = topic
            return topic
        }
    }

    func listTopics(
        _ request: Test_Realistic_Pubsub_ListTopicsRequest,
        context: SessionContext
    ) -> Test_Realistic_Pubsub_ListTopicsReply {
        topics.withLock { topics in .with { $0.topics = .init(topics.values) } }
    }

    func deleteTopic(
        _ request: Test_Realistic_Pubsub_DeleteTopicRequest,
        context: SessionContext
    ) -> Google_Protobuf_Empty {
        topics.withLock { topics in _ = topics.removeValue(forKey: request.name) }
        return .init()
    }

    func publish(
        _ request: Test_Realistic_Pubsub_PublishRequest,
        context: SessionContext
    ) -> Test_Realistic_Pubsub_PublishReply {
        let ids = count.withLock { count in
            defer { count += request.messages.count }
            return request.messages.indices.map { "\(count + $0 + 1)" }
        }
        return .with { $0.ids = .init(ids) }
    }

    func publishAll(
        _ requests: SessionMessages<Test_Realistic_Pubsub_PublishRequest>,
        context: SessionContext
    ) async throws -> Google_Protobuf_Empty {
        for try await request in requests { _ = publish(request, context: context) }
        return .init()
    }
}

/// Numbers its messages.
private struct Subscriber: Test_Realistic_Pubsub_SubscriberHandler {
    func createSubscription(
        _ request: Test_Realistic_Pubsub_Subscription,
        context: SessionContext
    ) -> Test_Realistic_Pubsub_Subscription {
        request
    }

    func pull(
        _ request: Test_Realistic_Pubsub_PullRequest,
        context: SessionContext
    ) -> Test_Realistic_Pubsub_PullReply {
        .with { $0.deliveries = .init((1...request.maximum).map { delivery("\($0)") }) }
    }

    func acknowledge(
        _ request: Test_Realistic_Pubsub_AcknowledgeRequest,
        context: SessionContext
    ) throws -> Google_Protobuf_Empty {
        guard request.acknowledgementIds == ["1", "2"] else { throw SessionStatus(.invalidArgument) }
        return .init()
    }

    func streamingPull(
        _ requests: SessionMessages<Test_Realistic_Pubsub_StreamingPullRequest>,
        to stream: SessionStreamWriter<Test_Realistic_Pubsub_StreamingPullReply>,
        context: SessionContext
    ) async throws {
        var pending = ["5", "4", "3"]
        for try await request in requests {
            if let last = pending.last, request.acknowledgementIds.contains(last) { pending.removeLast() }
            if let next = pending.last { try await stream.send(.with { $0.deliveries = [delivery(next)] }) }
        }
        guard pending.isEmpty else { throw SessionStatus(.failedPrecondition) }
    }

    private func delivery(_ id: String) -> Test_Realistic_Pubsub_Delivery {
        .with { ($0.acknowledgementID, $0.attempt, $0.message.id) = (id, 1, id) }
    }
}
