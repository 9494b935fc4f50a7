/// The fate of all messages between the clients and the servers of a fleet.
package struct FleetTally: Sendable {
    /// Delivered messages, each counted once.
    package private(set) var deliveredCount = 0
    /// Messages that were lost without a report.
    package private(set) var lost = 0
    package private(set) var doubled = 0
    package private(set) var reordered = 0
    /// Messages to servers and to groups that were reported to their senders as possibly lost.
    package private(set) var inDoubt = 0
    /// Messages to clients that were lost and reported to the clients.
    package private(set) var lostAsTold = 0
    package private(set) var lostSessions = 0
    /// Gaps that messages to groups have reported. Not all of them miss messages.
    package private(set) var gapCount = 0
    /// The failures, a line for each sender and receiver.
    package private(set) var findings: [String] = []

    /// - Parameter automaticGroup: the group that all sessions join automatically.
    package init(_ clients: [ClientReport], _ servers: ServerSummary, automaticGroup: String) {
        inDoubt = servers.doubted.values.reduce(0) { $0 + $1.count }
        for client in clients {
            lostSessions += client.lostSessions.count
            findings += client.problems.map { "client \(client.client): \($0)" }
            for method in ClientMethod.allCases { countSent(method, client, servers) }
            countDirect(client, servers)
            for group in client.groups.keys.sorted() { countGroup(group, client, servers) }
            // A sender without received messages.
            if client.groups[automaticGroup] == nil { findings.append("client \(client.client): no group") }
        }
    }

    /// Whether there are no failures.
    package var isClean: Bool { lost + doubled + reordered == 0 && findings.isEmpty }

    /// Whether no message was lost, not even with a report.
    package var isFlawless: Bool { isClean && inDoubt + lostAsTold + lostSessions == 0 }

    // MARK: From clients to servers

    private mutating func countSent(_ method: ClientMethod, _ client: ClientReport, _ servers: ServerSummary) {
        let sent = client.sent[method] ?? ClientReport.Sent()
        let processed = (servers.processed[method]?[client.client] ?? []).sorted { $0.time < $1.time }.map(\.number)
        inDoubt += sent.inDoubt.count
        var check = NumberCheck()
        // Messages in doubt have no order: a server that has lost the session may continue to process them.
        for number in processed where !sent.inDoubt.contains(number) { check.receive(number) }
        let doubtful = processed.filter(sent.inDoubt.contains)
        deliveredCount += check.count + Set(doubtful).count
        add(
            "\(method.rawValue)s of client \(client.client)",
            lost: check.lost(of: sent.count, except: sent.inDoubt),
            doubled: check.doubled.count + doubtful.count - Set(doubtful).count,
            reordered: check.reordered.count
        )
    }

    // MARK: From servers to clients

    private mutating func countDirect(_ client: ClientReport, _ servers: ServerSummary) {
        deliveredCount += client.direct.count
        var lost: [[Int]] = []
        for (teller, end) in servers.told[client.client] ?? [:] {
            let numbers = client.direct.numbers(of: teller.sender)
            let isEndTold = client.lostSessions.contains(teller.session)
            lost += numbers.lost(of: end, isEndTold: isEndTold)
            lostAsTold += numbers.toldCount(of: end, isEndTold: isEndTold)
        }
        add(
            "direct messages to client \(client.client)",
            lost: lost,
            doubled: client.direct.doubled,
            reordered: client.direct.reordered
        )
    }

    private mutating func countGroup(_ group: String, _ client: ClientReport, _ servers: ServerSummary) {
        guard let check = client.groups[group] else { return }
        deliveredCount += check.count
        gapCount += check.gapCount
        var lost: [[Int]] = []
        for (pusher, end) in servers.pushed where pusher.group == group {
            let numbers = check.numbers(of: pusher.sender)
            let isEndTold = check.isEndTold(of: pusher.sender)
            let doubted = servers.doubted[pusher] ?? []
            let gaps = numbers.lost(of: end, isEndTold: isEndTold, except: doubted)
            // A reported interruption leaves one gap for each sender.
            lostAsTold += numbers.toldCount(of: end, isEndTold: isEndTold)
            lostAsTold += gaps.prefix(check.interruptionCount).reduce(0) { $0 + $1.count }
            lost += gaps.dropFirst(check.interruptionCount)
        }
        add("\(group) at client \(client.client)", lost: lost, doubled: check.doubled, reordered: check.reordered)
    }

    private mutating func add(_ name: String, lost gaps: [[Int]], doubled: Int, reordered: Int) {
        let lost = gaps.joined().sorted()
        self.lost += lost.count
        self.doubled += doubled
        self.reordered += reordered
        let numbers = lost.prefix(5).map(String.init).joined(separator: ", ") + (lost.count > 5 ? "…" : "")
        let words = [
            lost.isEmpty ? nil : "\(lost.count) lost (\(numbers))", doubled == 0 ? nil : "\(doubled) doubled",
            reordered == 0 ? nil : "\(reordered) reordered",
        ]
        if words.contains(where: { $0 != nil }) {
            findings.append("\(name): \(words.compactMap { $0 }.joined(separator: ", "))")
        }
    }
}
