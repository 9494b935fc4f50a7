internal import LifelineFleet

extension FleetEngineChecks {
    static let leases = [
        FleetEngineCheck("a node with a lease is alive") { fleet in
            let nodes = fleet.nodeNames()
            try await expectLive([], among: nodes, fleet)
            try await fleet.engines[0].renewLease(of: nodes[0], for: .seconds(60))
            try await fleet.engines[1].renewLease(of: nodes[2], for: .seconds(60))
            try await expectLive([nodes[0], nodes[2]], among: nodes, fleet)
            try await expectLive([], among: [], fleet)
        },
        FleetEngineCheck("a lease that is ended is over at once") { fleet in
            let nodes = fleet.nodeNames()
            for node in nodes { try await fleet.engines[0].renewLease(of: node, for: .seconds(60)) }
            for _ in 1...2 { await fleet.engines[0].endLease(of: nodes[1]) }
            try await expectLive([nodes[0], nodes[2]], among: nodes, fleet)
            try await fleet.engines[0].renewLease(of: nodes[1], for: .seconds(60))
            try await expectLive(Set(nodes), among: nodes, fleet)
        },
        FleetEngineCheck("a lease is over when it was not renewed") { fleet in
            let nodes = fleet.nodeNames()
            for node in nodes { try await fleet.engines[0].renewLease(of: node, for: .milliseconds(300)) }
            try await fleet.engines[0].renewLease(of: nodes[0], for: .seconds(60))
            for _ in 0..<2_000 {
                if try await fleet.engines[1].liveNodes(among: nodes).count == 1 { break }
                try await Task.sleep(for: .milliseconds(5))
            }
            try await expectLive([nodes[0]], among: nodes, fleet)
        },
    ]

    /// Both engines say the same.
    private static func expectLive(
        _ live: Set<String>,
        among nodes: [String],
        _ fleet: CheckedFleet
    ) async throws {
        for engine in fleet.engines {
            let told = try await engine.liveNodes(among: nodes)
            try expect(told == live, "\(told.sorted()) are alive, not \(live.sorted()).")
        }
    }
}

extension CheckedFleet {
    /// Names of three unused nodes.
    fileprivate func nodeNames() -> [String] {
        let base = "\(UInt64.random(in: .min ... .max))"
        return [base, "\(base)}:{", "\(base)\n\u{E9}"]
    }
}
