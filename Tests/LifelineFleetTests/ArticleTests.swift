import Lifeline
import LifelineClientTestSupport
import LifelineFleet
import LifelineProtos
import NIOConcurrencyHelpers
import SampleServices
import Testing

/// Runs the code of docs/groups.md.
@Suite(.timeLimit(.minutes(1))) struct ArticleTests {
    @Test func aHandlersPushReachesItsMember() async throws {
        let received = NIOLockedValueBox<[String]>([])
        try await withSessionServer(listeningOn: anyPort, services: [Room(fleet: openFleet())]) { server in
            try await withSessionClient(to: server.boundEndpoints[0]) { session in
                let reading = Task {
                    try await Shown.metadata(session) { item in received.withLockedValue { $0.append("\(item)") } }
                }
                let _: Sample_Room_V1_SayReply = try await session.call("test/Enter", Sample_Room_V1_SayRequest())
                try await until { received.withLockedValue { $0.count } == 1 }
                reading.cancel()
                _ = await reading.result
            }
        }
        #expect(received.withLockedValue { $0.allSatisfy { $0.contains("Dinner") } })
    }

    @Test func aClientJoinsByItself() async throws {
        let fleet = openFleet()
        let received = NIOLockedValueBox<[String]>([])
        try await fleet.say(["one", "two"], in: "rooms/7")
        try await withSessionServer(listeningOn: anyPort, services: [fleet]) { server in
            try await withSessionClient(to: server.boundEndpoints[0]) { session in
                let reading = Task {
                    try await Shown.join(session) { item in received.withLockedValue { $0.append("\(item)") } }
                }
                try await until { received.withLockedValue { $0.count } == 2 }
                reading.cancel()
                _ = await reading.result
            }
        }
    }

    @Test func sessionsAreInAutomaticGroups() async throws {
        let fleet = Shown.fleetWithAutomaticGroups()
        try await withSessionServer(listeningOn: anyPort, services: [fleet]) { server in
            try await withSessionClient(to: server.boundEndpoints[0], configuration: .named("ada")) { _ in
                let session = try await server.session(of: "ada")
                try await until { fleet.groups(of: session) == ["everybody"] }
            }
        }
    }
}

/// A service with one method that makes its caller a member, and pushes to it.
private struct Room: SessionService {
    let fleet: Fleet

    var methods: [SessionMethod] {
        [
            .unary("test/Enter") { (_: Sample_Room_V1_SayRequest, context) in
                try await push(.with { $0.text = "Dinner is at eight." }, context: context)
                return Sample_Room_V1_SayReply()
            }
        ]
    }

    private func push(_ item: Sample_Room_V1_NewsItem, context: SessionContext) async throws {
        // snippet.join-and-push
        // In a handler of Room:
        try await fleet.join("rooms/7", context.session)
        try await fleet.push(Sample_Room_V1_RoomPushes.news, item, to: "rooms/7")
        // snippet.end
    }
}

/// The document's code, with the parts that it leaves out.
private enum Shown {
    static func server(_ endpoint: Endpoint) async throws {
        func Room(_ fleet: Fleet) -> any SessionService { ArticleRoom(fleet: fleet) }
        // snippet.server
        let fleet = Fleet()
        try await withSessionServer(listeningOn: endpoint, services: [Room(fleet), fleet]) { server in
            try await server.waitUntilShutDown()
        }
        // snippet.end
    }

    private typealias ArticleRoom = LifelineFleetTests.Room

    static func fleetWithAutomaticGroups() -> Fleet {
        // snippet.automatic-groups
        var configuration = FleetConfiguration()
        configuration.automaticGroups = { session in
            ["everybody"] + (session.identity.map { ["users/\($0.subject)"] } ?? [])
        }
        let fleet = Fleet(configuration: configuration)
        // snippet.end
        return fleet
    }

    static func metadata(_ session: SessionClient, print: (Any) -> Void) async throws {
        // snippet.metadata-of-pushes
        let room = Sample_Room_V1_RoomClient(session)
        for try await push in room.news.withMetadata {
            if push.group?.followsGap == true { print("(something is missing here)") }
            print(push.message)
        }
        // snippet.end
    }

    static func configure(_ configuration: inout FleetConfiguration) {
        // snippet.may-join
        configuration.mayJoin = { group, session in
            guard session.identity?.attributes["rooms"]?.contains(group) == true else {
                throw SessionStatus(.permissionDenied, "You are not invited to \(group).")
            }
        }
        // snippet.end
        // snippet.presence
        configuration.presence = { group, session in
            session.identity.map { GroupMember($0.subject, attributes: ["picture": $0.attributes["picture"] ?? ""]) }
        }
        // snippet.end
    }

    static func join(_ session: SessionClient, print: (Any) -> Void) async throws {
        let room = Sample_Room_V1_RoomClient(session)
        // snippet.with-group
        try await session.withGroup("rooms/7", from: .earliest) { group in
            for try await push in room.news.withMetadata { print(push.message) }
        }
        // snippet.end
    }

    static func watch(_ fleet: Fleet) async throws {
        // snippet.watching-presence
        let members = try await fleet.members(of: "rooms/7")
        print(members.count)
        for try await event in fleet.presence(of: "rooms/7") {
            switch event {
            case .present(let members): print(members)  // first, and after too much at once
            case .joined(let member): print("\(member) came")
            case .left(let member): print("\(member) went")
            }
        }
        // snippet.end
    }
}
