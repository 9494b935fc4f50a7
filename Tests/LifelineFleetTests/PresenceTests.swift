import Lifeline
import LifelineClientTestSupport
import LifelineFleet
import LifelineRuntime
import LifelineTestSupport
import Testing

/// Presence in groups, with real sessions over TCP. Sessions are present by name; those with the prefix "twin" are one
/// member.
@Suite(.timeLimit(.minutes(1))) struct PresenceTests {
    private func fleet(
        _ engine: any FleetEngine = MemoryFleetEngine(),
        _ change: (inout FleetConfiguration) -> Void = { _ in }
    ) -> Fleet {
        var configuration = FleetConfiguration()
        configuration.mayJoin = { _, _ in }
        configuration.comparisonInterval = .milliseconds(20)
        configuration.presenceGrace = .milliseconds(50)
        configuration.presence = { group, session in
            if session.name.isEmpty { return nil }
            return GroupMember(session.name.hasPrefix("twin") ? "twin" : session.name, attributes: ["in": group])
        }
        change(&configuration)
        return Fleet(engine: engine, configuration: configuration)
    }

    private func withServer(
        _ fleet: Fleet,
        _ body: (SessionServer, Endpoint) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup { tasks in
            tasks.addTask { try await fleet.run() }
            defer { tasks.cancelAll() }
            var configuration = SessionServerConfiguration()
            configuration.server.shutdownGracePeriod = .zero
            try await withSessionServer(listeningOn: anyPort, configuration: configuration, services: [fleet]) {
                server in
                try await body(server, server.boundEndpoints[0])
            }
        }
    }

    private func member(_ name: String, in group: String = "g") -> GroupMember {
        GroupMember(name, attributes: ["in": group])
    }

    @Test func joinsAndLeavesAreReported() async throws {
        let fleet = fleet()
        try await withServer(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("ada")) { _ in
                try await fleet.join("g", server.session(of: "ada"))
                var events = fleet.presence(of: "g").makeAsyncIterator()
                #expect(try await events.next() == .present([member("ada")]))
                try await withSessionClient(to: endpoint, configuration: .named("bob")) { _ in
                    try await fleet.join("g", server.session(of: "bob"))
                    try await fleet.join("other", server.session(of: "bob"))
                    #expect(try await events.next() == .joined(member("bob")))
                    #expect(try await Set(fleet.members(of: "g")) == [member("ada"), member("bob")])
                    #expect(try await fleet.members(of: "other") == [member("bob", in: "other")])
                }
                #expect(try await events.next() == .left(member("bob")))
                try await fleet.leave("g", server.session(of: "ada"))
                #expect(try await events.next() == .left(member("ada")))
                #expect(try await fleet.members(of: "g") == [])
            }
        }
    }

    @Test func sessionsWithOneNameAreOneMember() async throws {
        let fleet = fleet()
        try await withServer(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("twin 1")) { _ in
                try await withSessionClient(to: endpoint, configuration: .named("twin 2")) { _ in
                    try await withSessionClient(to: endpoint, configuration: .named("ada")) { _ in
                        let sessions = [try await server.session(of: "twin 1"), try await server.session(of: "twin 2")]
                        var events = fleet.presence(of: "g").makeAsyncIterator()
                        #expect(try await events.next() == .present([]))
                        for session in sessions { try await fleet.join("g", session) }
                        #expect(try await events.next() == .joined(member("twin")))
                        fleet.leave("g", sessions[0])
                        try await fleet.join("g", server.session(of: "ada"))
                        #expect(try await events.next() == .joined(member("ada")))
                        fleet.leave("g", sessions[1])
                        #expect(try await events.next() == .left(member("twin")))
                    }
                }
            }
        }
    }

    @Test func nobodyIsShownUnlessTheServerSaysSo() async throws {
        let fleet = fleet { $0.presence = FleetConfiguration().presence }
        let long = self.fleet { $0.presence = { _, _ in GroupMember(String(repeating: "x", count: 256)) } }
        for fleet in [fleet, long] {
            try await withServer(fleet) { server, endpoint in
                try await withSessionClient(to: endpoint, configuration: .named("ada")) { _ in
                    try await fleet.join("g", server.session(of: "ada"))
                    #expect(fleet.memberCount(of: "g") == 1)
                    #expect(try await fleet.members(of: "g") == [])
                }
            }
        }
    }

    @Test func serversThatShareAnEngineTellOfEachOthersMembers() async throws {
        let engine = MemoryFleetEngine()
        let fleets = [fleet(engine), fleet(engine)]
        try await withServer(fleets[0]) { _, _ in
            var events = fleets[0].presence(of: "g").makeAsyncIterator()
            #expect(try await events.next() == .present([]))
            try await withServer(fleets[1]) { server, endpoint in
                try await withSessionClient(to: endpoint, configuration: .named("bob")) { _ in
                    try await fleets[1].join("g", server.session(of: "bob"))
                    #expect(try await events.next() == .joined(member("bob")))
                    #expect(try await fleets[0].members(of: "g") == [member("bob")])
                    // No session watches there.
                    #expect(try await fleets[1].members(of: "g") == [member("bob")])
                }
                #expect(try await events.next() == .left(member("bob")))
            }
        }
    }

    /// A killed node does not remove its members. Its lease ends.
    @Test func theMembersOfADeadServerLeave() async throws {
        let engine = MemoryFleetEngine()
        try await engine.renewLease(of: "dead", for: .seconds(60))
        let change = PresenceChange(
            node: "dead",
            version: 1,
            base: nil,
            present: [GroupMember("bob")],
            absent: []
        )
        _ = try await engine.updatePresence(change, of: "g", keepingFor: .seconds(60))
        let fleet = fleet(engine)
        try await withServer(fleet) { _, _ in
            var events = fleet.presence(of: "g").makeAsyncIterator()
            let first = try await events.next()
            #expect(first == .present([GroupMember("bob")]))
            await engine.endLease(of: "dead")
            #expect(try await events.next() == .left(GroupMember("bob")))
            #expect(try await fleet.members(of: "g") == [])
        }
    }

    // MARK: Clients

    @Test func aClientIsToldWhoIsThere() async throws {
        let engine = MemoryFleetEngine()
        // More than one update has.
        let crowd = (1...1_200).map { GroupMember("member \($0)") }
        try await engine.renewLease(of: "other", for: .seconds(60))
        let change = PresenceChange(node: "other", version: 1, base: nil, present: crowd, absent: [])
        _ = try await engine.updatePresence(change, of: "g", keepingFor: .seconds(60))
        let fleet = fleet(engine)
        try await withServer(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint) { client in
                var events = client.presence(of: "g").makeAsyncIterator()
                guard case .present(let members) = try await events.next() else {
                    Issue.record("It begins without the members.")
                    return
                }
                #expect(Set(members) == Set(crowd))
                #expect(members.count == crowd.count)
                try await withSessionClient(to: endpoint, configuration: .named("bob")) { _ in
                    try await fleet.join("g", server.session(of: "bob"))
                    #expect(try await events.next() == .joined(member("bob")))
                }
                #expect(try await events.next() == .left(member("bob")))
            }
        }
    }

    @Test func membersMayWatch() async throws {
        let fleet = fleet { $0.mayJoin = FleetConfiguration().mayJoin }
        try await withServer(fleet) { server, endpoint in
            try await withSessionClient(to: endpoint, configuration: .named("ada")) { client in
                var refused = client.presence(of: "g").makeAsyncIterator()
                let first = await #expect(throws: SessionError.self) { _ = try await refused.next() }
                #expect(first?.status?.code == .permissionDenied)
                let session = try await server.session(of: "ada")
                try await fleet.join("g", session)
                var events = client.presence(of: "g").makeAsyncIterator()
                #expect(try await events.next() == .present([member("ada")]))
                // A session that is no longer a member gets no more events.
                fleet.leave("g", session)
                let last = await #expect(throws: SessionError.self) { _ = try await events.next() }
                #expect(last?.status?.code == .permissionDenied)
                var unnamed = client.presence(of: "").makeAsyncIterator()
                let error = await #expect(throws: SessionError.self) { _ = try await unnamed.next() }
                #expect(error?.status?.code == .invalidArgument)
            }
        }
    }

    @Test func aClientWatchesOnWhereItsSessionIsLost() async throws {
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: try TestPort.next())
        var configuration = SessionServerConfiguration()
        configuration.server.shutdownGracePeriod = .zero
        try await withSessionClient(to: endpoint) { client in
            var events = client.presence(of: "g").makeAsyncIterator()
            try await withSessionServer(
                listeningOn: endpoint,
                configuration: configuration,
                services: [fleet()]
            ) { _ in
                let first = try await events.next()
                #expect(first == .present([]))
            }
            let second = fleet()
            try await withSessionServer(
                listeningOn: endpoint,
                configuration: configuration,
                services: [second]
            ) { server in
                client.reconnect()
                #expect(try await events.next() == .present([]))
                try await withSessionClient(to: endpoint, configuration: .named("bob")) { _ in
                    try await second.join("g", server.session(of: "bob"))
                    #expect(try await events.next() == .joined(member("bob")))
                }
            }
        }
    }

    @Test func aWatcherThatIsCancelledEnds() async throws {
        let fleet = fleet()
        let task = Task {
            for try await event in fleet.presence(of: "g") { #expect(event == .present([])) }
        }
        task.cancel()
        let error = await #expect(throws: FleetError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        var unnamed = fleet.presence(of: "").makeAsyncIterator()
        let other = await #expect(throws: FleetError.self) { _ = try await unnamed.next() }
        #expect(other?.code == .badName)
    }
}
