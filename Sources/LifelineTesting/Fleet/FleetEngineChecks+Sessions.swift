import LifelineFleet

extension FleetEngineChecks {
    private static let lifetime = Duration.seconds(60)

    static let sessions = [
        FleetEngineCheck("a session that nobody has is unknown") { fleet in
            try await expectTake(.unknown, of: fleet.session(), by: 0, fleet)
        },
        FleetEngineCheck("a session belongs to the node that has claimed it") { fleet in
            let session = fleet.session()
            try await fleet.engines[0].claim([session], for: fleet.nodes[0].name, lifetime: lifetime)
            try await fleet.engines[1].claim([session], for: fleet.nodes[1].name, lifetime: lifetime)
            try await expectTake(.owned(by: fleet.nodes[0].name), of: session.with(attempt: 2), by: 1, fleet)
            try await expectTake(.stale, of: session, by: 1, fleet)
            try await expectTake(.unknown, of: session.with(attempt: 2, proof: [1]), by: 1, fleet)
        },
        FleetEngineCheck("a state that was left is taken once") { fleet in
            let session = fleet.session()
            let second = session.with(attempt: 2)
            try await fleet.engines[0].claim([session], for: fleet.nodes[0].name, lifetime: lifetime)
            try await fleet.park([0, 13, 10, 255], session, by: 0)
            try await expectTake(.unknown, of: session.with(attempt: 2, proof: [1]), by: 1, fleet)
            try await expectTake(.state([0, 13, 10, 255]), of: second, by: 1, fleet)
            // The answers may have been lost.
            try await expectTake(.state([0, 13, 10, 255]), of: second, by: 1, fleet)
            for _ in 1...2 { try await expectConfirmation(.confirmed, second, by: 1, fleet) }
            try await expectTake(.owned(by: fleet.nodes[1].name), of: session.with(attempt: 3), by: 0, fleet)
            // The same holds for leaving.
            try await fleet.park([7], session, by: 0)
            try await expectTake(.owned(by: fleet.nodes[1].name), of: session.with(attempt: 3), by: 0, fleet)
        },
        FleetEngineCheck("of two nodes that want a session, the higher attempt gets it") { fleet in
            let session = fleet.session(attempt: 9)
            try await fleet.park([1], session, by: 0)
            let (earlier, later) = (session.with(attempt: 10), session.with(attempt: 11))
            try await expectTake(.state([1]), of: earlier, by: 0, fleet)
            try await expectTake(.state([1]), of: later, by: 1, fleet)
            try await expectTake(.stale, of: earlier, by: 0, fleet)
            try await expectConfirmation(.stale, earlier, by: 0, fleet)
            try await expectConfirmation(.confirmed, later, by: 1, fleet)
        },
        FleetEngineCheck("a state that comes late does not take the place of a newer one") { fleet in
            let session = fleet.session()
            let again = session.with(attempt: 2)
            try await fleet.park([1], session, by: 0)
            // Its client has come back to the same node.
            try await expectTake(.state([1]), of: again, by: 0, fleet)
            try await expectConfirmation(.confirmed, again, by: 0, fleet)
            try await fleet.park([1], session, by: 0)
            try await expectTake(.owned(by: fleet.nodes[0].name), of: session.with(attempt: 3), by: 1, fleet)
            try await fleet.park([2], again, by: 0)
            try await expectTake(.state([2]), of: session.with(attempt: 3), by: 1, fleet)
        },
        FleetEngineCheck("what the engine has forgotten is not confirmed") { fleet in
            try await expectConfirmation(.unknown, fleet.session(), by: 0, fleet)
        },
        FleetEngineCheck("a session that is claimed again stays on its way") { fleet in
            let session = fleet.session()
            try await fleet.park([1], session, by: 0)
            try await fleet.engines[0].claim([session], for: fleet.nodes[0].name, lifetime: lifetime)
            try await fleet.engines[0].forget(session, by: fleet.nodes[0].name)
            try await expectTake(.state([1]), of: session.with(attempt: .max), by: 1, fleet)
        },
        FleetEngineCheck("a session that is over is forgotten") { fleet in
            let sessions = [fleet.session(), fleet.session()]
            try await fleet.engines[0].claim(sessions, for: fleet.nodes[0].name, lifetime: lifetime)
            try await fleet.engines[1].forget(sessions[0], by: fleet.nodes[1].name)
            try await fleet.engines[0].forget(sessions[1], by: fleet.nodes[0].name)
            try await expectTake(.owned(by: fleet.nodes[0].name), of: sessions[0].with(attempt: 2), by: 1, fleet)
            try await expectTake(.unknown, of: sessions[1].with(attempt: 2), by: 1, fleet)
        },
        FleetEngineCheck("a session is forgotten in time") { fleet in
            let sessions = [fleet.session(), fleet.session()]
            let short = Duration.milliseconds(300)
            try await fleet.engines[0].claim([sessions[0]], for: fleet.nodes[0].name, lifetime: short)
            try await fleet.engines[0].park([1], of: sessions[1], by: fleet.nodes[0].name, lifetime: short)
            for session in sessions.map({ $0.with(attempt: 2) }) {
                for _ in 0..<2_000 {
                    if try await fleet.engines[1].take(session, for: fleet.nodes[1].name) == .unknown { break }
                    try await Task.sleep(for: .milliseconds(5))
                }
                try await expectTake(.unknown, of: session, by: 1, fleet)
            }
        },
        FleetEngineCheck("a node is told something") { fleet in
            let texts = ["one", "two", "three"]
            // A node that has just started may not listen yet.
            for _ in 0..<2_000 where !(try await fleet.engines[0].tell([], to: fleet.nodes[1].name)) {
                try await Task.sleep(for: .milliseconds(5))
            }
            for text in texts {
                let isHeard = try await fleet.engines[0].tell(Array(text.utf8), to: fleet.nodes[1].name)
                try expect(isHeard, "A node that is there does not listen.")
            }
            try await fleet.waitForNews(of: "told", at: 1, texts)
            let nobody = try await fleet.engines[0].tell([1], to: "nobody \(UInt64.random(in: .min ... .max))")
            try expect(!nobody, "A node listens that there is not.")
        },
    ]

    private static func expectTake(
        _ expected: FleetTake,
        of session: FleetSession,
        by node: Int,
        _ fleet: CheckedFleet
    ) async throws {
        let take = try await fleet.engines[node].take(session, for: fleet.nodes[node].name)
        try expect(take == expected, "A node that asks for a session gets \(take), not \(expected).")
    }

    private static func expectConfirmation(
        _ expected: FleetConfirmation,
        _ session: FleetSession,
        by node: Int,
        _ fleet: CheckedFleet
    ) async throws {
        let name = fleet.nodes[node].name
        let confirmation = try await fleet.engines[node].confirm(session, by: name, lifetime: lifetime)
        try expect(confirmation == expected, "A session that was taken is \(confirmation), not \(expected).")
    }
}

extension CheckedFleet {
    /// An unused session.
    fileprivate func session(attempt: UInt64 = 1) -> FleetSession {
        FleetSession(id: "\(UInt64.random(in: .min ... .max))", proof: Array("proof\n".utf8), attempt: attempt)
    }

    fileprivate func park(_ state: [UInt8], _ session: FleetSession, by node: Int) async throws {
        try await engines[node].park(state, of: session, by: nodes[node].name, lifetime: .seconds(60))
    }
}

extension FleetSession {
    fileprivate func with(attempt: UInt64, proof: [UInt8]? = nil) -> FleetSession {
        FleetSession(id: id, proof: proof ?? self.proof, attempt: attempt)
    }
}
