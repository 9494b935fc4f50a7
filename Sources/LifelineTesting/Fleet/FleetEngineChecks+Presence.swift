internal import LifelineFleet
internal import NIOConcurrencyHelpers

extension FleetEngineChecks {
    private static let minute = Duration.seconds(60)

    static let presence = [
        FleetEngineCheck("changes of members are taken in their order") { fleet in
            let (group, node) = (fleet.group(), fleet.nodes[0].name)
            let (ada, bob, eve) = (GroupMember("ada", attributes: ["a": "1"]), GroupMember("bob"), GroupMember("eve"))
            try await fleet.expectMembers([], version: 0, of: group, at: node)
            // A change to a version that does not exist.
            try await fleet.update(group, base: 4, version: 5, [ada], expecting: 0)
            try await fleet.update(group, version: 10, [ada, bob], expecting: 10)
            try await fleet.expectMembers([ada, bob], version: 10, of: group, at: node)
            try await fleet.update(group, base: 10, version: 11, [eve], absent: ["bob", "nobody"], expecting: 11)
            try await fleet.expectMembers([ada, eve], version: 11, of: group, at: node)
            // The news was early or late.
            try await fleet.update(group, base: 10, version: 11, [bob], expecting: 11)
            try await fleet.update(group, base: 10, version: 12, [bob], expecting: 11)
            try await fleet.update(group, version: 11, [bob], expecting: 11)
            try await fleet.expectMembers([ada, eve], version: 11, of: group, at: node)
            let other = GroupMember("ada", attributes: ["a": "2", "\u{E9}\n{}": ""])
            try await fleet.update(group, base: 11, version: 20, [other], absent: ["eve"], expecting: 20)
            try await fleet.expectMembers([other], version: 20, of: group, at: node)
            try await fleet.update(group, version: 21, [bob], expecting: 21)
            try await fleet.expectMembers([bob], version: 21, of: group, at: node)
            try await fleet.update(group, base: 21, version: 22, [], absent: ["bob"], expecting: 22)
            try await fleet.expectMembers([], version: 22, of: group, at: node)
            try await fleet.update(group, base: 22, version: 23, [eve], expecting: 23)
            try await fleet.expectMembers([eve], version: 23, of: group, at: node)
        },
        FleetEngineCheck("each node has members of its own") { fleet in
            let (groups, nodes) = ([fleet.group(), fleet.group(), fleet.group()], fleet.nodes.map(\.name))
            try await fleet.update(groups[0], version: 1, [GroupMember("ada")], expecting: 1)
            let members = [GroupMember("ada"), GroupMember("bob")]
            try await fleet.update(groups[0], by: 1, version: 7, members, expecting: 7)
            try await fleet.update(groups[2], by: 1, version: 3, [], expecting: 3)
            for engine in fleet.engines {
                let versions = try await engine.presenceVersions(of: groups, keeping: nodes[0], for: minute)
                let expected = [[nodes[0]: 1, nodes[1]: 7], [:], [nodes[1]: 3]] as [[String: UInt64]]
                try expect(versions == expected, "The versions are \(versions).")
                let none = try await engine.presenceVersions(of: [], keeping: nodes[0], for: minute)
                try expect(none.isEmpty, "No groups have \(none.count) versions.")
            }
            try await fleet.expectMembers([GroupMember("ada")], version: 1, of: groups[0], at: nodes[0])
            try await fleet.expectMembers([], version: 0, of: groups[1], at: nodes[0])
            try await fleet.expectMembers([], version: 3, of: groups[2], at: nodes[1])
        },
        FleetEngineCheck("nodes that watch a group are told of its members") { fleet in
            let (group, mark) = (fleet.group(), fleet.group())
            for name in [group, mark] { try await fleet.engines[1].watchPresence(of: name, fleet.nodes[1].name) }
            try await fleet.update(group, version: 1, [GroupMember("ada")], expecting: 1)
            let ada = GroupMember("ada", attributes: ["a": "1"])
            try await fleet.update(group, base: 1, version: 2, [ada], absent: ["bob"], expecting: 2)
            // It was not accepted.
            try await fleet.update(group, base: 1, version: 3, [], absent: ["ada"], expecting: 2)
            let many = (1...1_000).map { GroupMember("member \($0)", attributes: ["text": "\($0)"]) }
            try await fleet.update(group, base: 2, version: 4, many, expecting: 4)
            try await fleet.waitForChanges(of: group, to: 4)
            let changes = fleet.changes.withLockedValue { $0[1][group] ?? [] }
            try expect(changes.map(\.version) == [1, 2, 4], "It was told of \(changes.map(\.version)).")
            try expect(changes[0].base == nil, "A change of all members is based on \(changes[0].base ?? 0).")
            let expected = PresenceChange(
                node: fleet.nodes[0].name,
                version: 2,
                base: 1,
                present: [ada],
                absent: ["bob"]
            )
            try expect(changes[1] == expected, "It was told \(changes[1]).")
            try expect(
                changes[2].base == nil || changes[2].base == 2 && changes[2].present.count == 1_000,
                "A large change has \(changes[2].present.count) members."
            )
            await fleet.engines[1].unwatchPresence(of: group, fleet.nodes[1].name)
            try await fleet.update(group, base: 4, version: 5, [], expecting: 5)
            try await fleet.update(mark, version: 1, [], expecting: 1)
            try await fleet.waitForChanges(of: mark, to: 1)
            let last = fleet.changes.withLockedValue { $0[1][group]?.last?.version }
            try expect(last == 4, "It was told of \(last ?? 0), and did not watch any more.")
        },
        FleetEngineCheck("members are kept while their node compares them") { fleet in
            let (group, nodes) = (fleet.group(), fleet.nodes.map(\.name))
            let short = Duration.seconds(2)
            try await fleet.update(group, version: 1, [GroupMember("ada")], keepingFor: short, expecting: 1)
            try await fleet.update(group, by: 1, version: 1, [GroupMember("bob")], keepingFor: short, expecting: 1)
            _ = try await fleet.engines[0].presenceVersions(of: [group], keeping: nodes[0], for: minute)
            for _ in 0..<2_000 {
                if try await fleet.engines[1].presence(of: group, at: nodes[1]).version == 0 { break }
                try await Task.sleep(for: .milliseconds(5))
            }
            try await fleet.expectMembers([], version: 0, of: group, at: nodes[1])
            try await fleet.expectMembers([GroupMember("ada")], version: 1, of: group, at: nodes[0])
            let versions = try await fleet.engines[1].presenceVersions(of: [group], keeping: nodes[1], for: minute)
            try expect(versions == [[nodes[0]: 1]], "The versions are \(versions).")
            // An expired version is no base.
            try await fleet.update(group, by: 1, base: 1, version: 2, [GroupMember("eve")], expecting: 0)
            try await fleet.update(group, by: 1, version: 1, [GroupMember("eve")], expecting: 1)
            try await fleet.expectMembers([GroupMember("eve")], version: 1, of: group, at: nodes[1])
        },
        FleetEngineCheck("names of members may be anything") { fleet in
            let base = fleet.group()
            let names = ["x", "caf\u{E9}", "cafe\u{301}", "\n\u{0}{}%", "\u{301}"]
            for group in ["\(base){x}", "\(base)\n\u{E9}", "\(base)e\u{301}"] {
                try await fleet.engines[1].watchPresence(of: group, fleet.nodes[1].name)
                try await fleet.update(group, version: 1, names.map { GroupMember($0) }, expecting: 1)
                let page = try await fleet.engines[1].presence(of: group, at: fleet.nodes[0].name)
                let found = Set(page.members.map { Array($0.name.utf8) })
                try expect(found == Set(names.map { Array($0.utf8) }), "The members are \(page.members.map(\.name)).")
                try await fleet.waitForChanges(of: group, to: 1)
            }
        },
    ]
}

extension CheckedFleet {
    fileprivate func update(
        _ group: String,
        by index: Int = 0,
        base: UInt64? = nil,
        version: UInt64,
        _ present: [GroupMember],
        absent: [String] = [],
        keepingFor lifetime: Duration = .seconds(60),
        expecting expected: UInt64
    ) async throws {
        let node = nodes[index].name
        let change = PresenceChange(node: node, version: version, base: base, present: present, absent: absent)
        let told = try await engines[index].updatePresence(change, of: group, keepingFor: lifetime)
        try expect(
            told == expected,
            "After a change from \(base.map { "\($0)" } ?? "nothing") to \(version) it has the version \(told)."
        )
    }

    /// Both engines say the same.
    fileprivate func expectMembers(
        _ members: Set<GroupMember>,
        version: UInt64,
        of group: String,
        at node: String
    ) async throws {
        for engine in engines {
            let page = try await engine.presence(of: group, at: node)
            try expect(page.version == version, "The version is \(page.version), not \(version).")
            try expect(
                Set(page.members) == members && page.members.count == members.count,
                "The members are \(page.members), not \(members)."
            )
        }
    }

    /// Waits for up to 10 s until the second node has news of a version.
    fileprivate func waitForChanges(of group: String, to version: UInt64) async throws {
        func isTold() -> Bool { changes.withLockedValue { $0[1][group]?.last?.version == version } }
        for _ in 0..<2_000 where !isTold() { try await Task.sleep(for: .milliseconds(5)) }
        try expect(isTold(), "A node was not told of the version \(version) of members within 10 s.")
    }
}
