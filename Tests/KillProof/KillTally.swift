#if Store
import Foundation
import GRDB
import LifelineStore

/// The fate of the messages.
struct KillTally {
    /// The messages that were stored or answered according to the client.
    private(set) var storedCount = 0
    private(set) var processedCount = 0
    private(set) var lost: [String] = []
    private(set) var doubled: [String] = []
    private(set) var reordered: [String] = []
    /// Messages that remain in the client's store.
    private(set) var leftCount = 0

    init(of files: KillFiles) async throws {
        let stored = try String(contentsOfFile: files.record, encoding: .utf8).split(separator: "\n").map(String.init)
        let store = try SQLiteSessionStore(path: files.serverStore, for: .server)
        let processed = try await store.database.read { db in
            try Row.fetchAll(db, sql: "SELECT method, number FROM effects ORDER BY rowid").map { row in
                (method: row["method"] as String, number: row["number"] as Int)
            }
        }
        count(stored: stored, processed: processed)
        let client = try DatabaseQueue(path: files.clientStore)
        leftCount = try await client.read { try Int.fetchOne($0, sql: "SELECT sum(count) FROM lifeline_group") ?? 0 }
    }

    /// - Parameters:
    ///   - stored: a method and a number each.
    ///   - processed: in the order in which they were.
    init(stored: [String], processed: [(method: String, number: Int)]) { count(stored: stored, processed: processed) }

    private mutating func count(stored: [String], processed: [(method: String, number: Int)]) {
        (storedCount, processedCount) = (stored.count, processed.count)
        var seen: Set<String> = []
        var newest: [String: Int] = [:]
        for (method, number) in processed {
            let name = "\(method) \(number)"
            if !seen.insert(name).inserted {
                doubled.append(name)
            } else if number < newest[method, default: 0], !KillClient.callMethods.contains(method) {
                reordered.append(name)
            } else {
                newest[method] = number
            }
        }
        lost = stored.filter { !seen.contains($0) }
    }

    var findings: [String] {
        [("lost", lost), ("doubled", doubled), ("reordered", reordered)].compactMap { name, messages in
            messages.isEmpty ? nil : "\(messages.count) \(name): \(messages.prefix(5).joined(separator: ", "))"
        } + (leftCount == 0 ? [] : ["\(leftCount) messages are left in the client's store."])
    }

    var line: String {
        "\(storedCount) messages stored or answered, \(processedCount) processed: "
            + "\(lost.count) lost, \(doubled.count) doubled, \(reordered.count) reordered"
    }
}
#endif
