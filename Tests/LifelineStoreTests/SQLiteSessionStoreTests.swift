#if Store
import Foundation
import GRDB
import Glibc
import Lifeline
import LifelineStore
import LifelineTestSupport
import Testing

/// The content of the store, and the errors of a store that cannot be used.
@Suite(.timeLimit(.minutes(1))) struct SQLiteSessionStoreTests {
    private let endpoint = Endpoint.tcp(host: "example.org", port: 7_000)

    private func code(_ body: () throws -> some Any) -> StoreError.Code? {
        do {
            _ = try body()
            return nil
        } catch {
            let error = error as? StoreError
            #expect(error?.message.hasSuffix(".") == true)
            return error?.code
        }
    }

    private func group(_ first: UInt64, _ count: Int = 1, byteCount: Int = 10) -> SessionStoreGroup {
        SessionStoreGroup(first: first, count: count, bytes: [UInt8](repeating: 7, count: byteCount), added: 5)
    }

    private func adding(_ group: SessionStoreGroup) -> SessionStoreChanges {
        var changes = SessionStoreChanges()
        changes.added = group
        return changes
    }

    private func removing(_ groups: [UInt64]) -> SessionStoreChanges {
        var changes = SessionStoreChanges()
        changes.removed = groups
        return changes
    }

    /// Version 1 had no replies in its marks, and only version 3 has dates of groups.
    @Test func anOlderVersionIsBroughtUpToDate() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            var store = try SQLiteSessionStore(path: path, for: .server)
            let (id, sender) = (store.id, SessionStoreID.random())
            try await store.database.write { db in
                try db.execute(sql: "ALTER TABLE lifeline_mark DROP COLUMN reply")
                try db.execute(sql: "ALTER TABLE lifeline_group DROP COLUMN added")
                try db.execute(sql: "ALTER TABLE lifeline_peer DROP COLUMN date")
                try db.execute(sql: "INSERT INTO lifeline_group VALUES (x'', 1, 1, x'07')")
                try db.execute(sql: "UPDATE lifeline_store SET version = 1")
                try db.execute(sql: "INSERT INTO lifeline_mark VALUES (?, 5)", arguments: [Data(sender.bytes)])
            }
            try store.close()
            for _ in 1...2 {
                store = try SQLiteSessionStore(path: path, for: .server)
                #expect(store.id == id)
                let content = try await store.content(for: sender)
                #expect(content.marked == [sender: [SessionStoreMark(number: 5)]])
                // The date is unknown, so the date of the migration is used.
                let added = try #require(try await store.groups(for: nil, from: 1, byteCount: 1).first?.added)
                #expect(added > 1_700_000_000_000)
                try store.close()
            }
        }
    }

    @Test func oldGroupsAreRemoved() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let store = try SQLiteSessionStore(path: path, for: .server)
            let peers = (0..<3).map { _ in SessionStoreID.random() }
            for peer in peers {
                try await store.commit(adding(group(1, 3)), for: peer)
                try await store.commit(
                    adding(SessionStoreGroup(first: 4, count: 1, bytes: [7], added: 6)),
                    for: peer
                )
            }
            #expect(try await store.removeGroups(addedUntil: 4, except: []) == 0)
            #expect(try await store.removeGroups(addedUntil: 5, except: [peers[0]]) == 6)
            for (peer, first) in zip(peers, [1, 4, 4] as [UInt64]) {
                let content = try await store.content(for: peer)
                #expect(content.first == first && content.next == 5 && content.byteCount == (first == 1 ? 11 : 1))
            }
            #expect(try await store.removeGroups(addedUntil: .max, except: []) == 6)
            #expect(try await store.content(for: peers[1]).first == 5)
        }
    }

    @Test func committedContentIsReadAgain() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let peer = SessionStoreID.random()
            var store = try SQLiteSessionStore(path: path, for: .server)
            let id = store.id
            #expect(try await store.content(for: peer).next == 1)
            try await store.commit(adding(group(1, 3)), for: peer)
            try await store.commit(adding(group(4)), for: peer)
            var changes = adding(group(10, 2))
            changes.processed = [peer: [5, 1, 2]]
            changes.date = 77
            changes.removed = [1]
            try await store.commit(changes, for: peer)
            try store.close()

            store = try SQLiteSessionStore(path: path, for: .server)
            #expect(store.id == id)
            let content = try await store.content(for: peer)
            #expect(content.first == 4 && content.next == 12 && content.byteCount == 20)
            #expect(content.processed == [peer: [5, 1, 2]])
            #expect(try await store.groups(for: peer, from: 1, byteCount: 100) == [group(4), group(10, 2)])
            #expect(try await store.groups(for: peer, from: 1, byteCount: 10) == [group(4)])
            #expect(try await store.groups(for: peer, from: 5, byteCount: 1) == [group(10, 2)])
            // Another client has other ones.
            #expect(try await store.content(for: .random()).next == 1)
            try await store.commit(removing([4, 10]), for: peer)
            let empty = try await store.content(for: peer)
            #expect(empty.first == 12 && empty.next == 12 && empty.byteCount == 0)
        }
    }

    @Test func aClientHasOnePeer() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let store = try SQLiteSessionStore(path: path, for: .client(of: endpoint))
            var changes = adding(group(1))
            let servers = [SessionStoreID.random(), .random()]
            changes.processed = [servers[0]: [1], servers[1]: [2]]
            try await store.commit(changes, for: nil)
            #expect(try await store.content(for: nil).processed == changes.processed)
            #expect(try await store.groups(for: nil, from: 1, byteCount: 1).count == 1)
        }
    }

    @Test func itIsForTheOwnerAlone() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let store = try SQLiteSessionStore(path: path, for: .server)
            try await store.commit(adding(group(1)), for: nil)
            for file in [path, path + "-wal", path + ".lock"] {
                var status = stat()
                #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600, "\(file)")
            }
            try store.close()
            chmod(path, 0o640)
            #expect(code { try SQLiteSessionStore(path: path, for: .server) } == .insecure)
            #expect("\(store.id)" == "(secret)")
        }
    }

    @Test func commitsAreSynchronized() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let store = try SQLiteSessionStore(path: path, for: .server)
            let (level, mode) = try await store.database.writeWithoutTransaction { db in
                try (Int.fetchOne(db, sql: "PRAGMA synchronous"), String.fetchOne(db, sql: "PRAGMA journal_mode"))
            }
            #expect(level == 2 && mode == "wal")
        }
    }

    /// As `sqlite3` and other tools do for a moment.
    @Test func itWaitsForAnotherProgramThatLocksTheFile() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let store = try SQLiteSessionStore(path: path, for: .server)
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let other = try DatabaseQueue(path: path, configuration: configuration)
            try await other.writeWithoutTransaction { try $0.beginTransaction(.exclusive) }
            async let commit: Void = store.commit(adding(group(1)), for: nil)
            for _ in 0..<1000 { await Task.yield() }
            try await other.writeWithoutTransaction { try $0.commit() }
            try await commit
            #expect(try await store.groups(for: nil, from: 1, byteCount: 100).count == 1)
        }
    }

    @Test func oneProcessUsesItAtATime() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let store = try SQLiteSessionStore(path: path, for: .server)
            #expect(code { try SQLiteSessionStore(path: path, for: .server) } == .inUse)
            try store.close()
            _ = try SQLiteSessionStore(path: path, for: .server)
        }
    }

    @Test func itSaysWhoseItIs() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            _ = try SQLiteSessionStore(path: path, for: .client(of: endpoint))
            #expect(code { try SQLiteSessionStore(path: path, for: .server) } == .otherUse)
            #expect(
                code { try SQLiteSessionStore(path: path, for: .client(of: .tcp(host: "a", port: 1))) } == .otherUse
            )
            _ = try SQLiteSessionStore(path: path, for: .client(of: endpoint))
        }
        #expect(code { try SQLiteSessionStore(path: "/tmp", for: .server) } == .failed)
        #expect(code { try SQLiteSessionStore(path: "/no/such/folder/store", for: .server) } == .failed)
        #expect(code { try SQLiteSessionStore(path: "/dev/null", for: .server) } == .otherUse)
        removeFile(at: "/dev/null.lock")
        removeFile(at: "/tmp.lock")
    }

    @Test func aNewerOneIsLeftAlone() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let store = try SQLiteSessionStore(path: path, for: .server)
            try await store.database.write { try $0.execute(sql: "UPDATE lifeline_store SET version = 1000") }
            try store.close()
            #expect(code { try SQLiteSessionStore(path: path, for: .server) } == .newerVersion)
        }
    }

    @Test func damageIsTold() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            writeFile([UInt8]("This is no database, but a text that is longer than its header.".utf8), to: path)
            #expect(code { try SQLiteSessionStore(path: path, for: .server) } == .damaged)
        }
        try await withTemporaryPath("store.sqlite") { path in
            var store = try SQLiteSessionStore(path: path, for: .server)
            try await store.database.write { try $0.execute(sql: "DELETE FROM lifeline_store") }
            try store.close()
            #expect(code { try SQLiteSessionStore(path: path, for: .server) } == .damaged)
            removeFile(at: path)
            store = try SQLiteSessionStore(path: path, for: .server)
            try await store.commit(adding(group(1)), for: nil)
            for damage in [
                "SET next = -5", "SET next = 'x'", "SET byte_count = x'00'", "SET next = 1, byte_count = -1",
            ] {
                try await store.database.write { try $0.execute(sql: "UPDATE lifeline_peer \(damage)") }
                await #expect { try await store.content(for: nil) } throws: { error in
                    (error as? StoreError)?.code == .damaged
                }
            }
            try await store.database.write { try $0.execute(sql: "UPDATE lifeline_group SET count = 'x'") }
            await #expect { try await store.groups(for: nil, from: 1, byteCount: 9) } throws: { error in
                (error as? StoreError)?.code == .damaged
            }
        }
    }

    @Test func anApplicationHasTablesOfItsOwn() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let database = try DatabaseQueue(path: path)
            try await database.write { try $0.execute(sql: "CREATE TABLE orders (number INTEGER)") }
            try database.close()
            chmod(path, 0o600)
            let store = try SQLiteSessionStore(path: path, for: .server)
            try await store.database.write { try $0.execute(sql: "INSERT INTO orders VALUES (1)") }
            try await store.commit(adding(group(1)), for: nil)
            #expect(try await store.content(for: nil).next == 2)
        }
    }

    @Test func theFileShrinks() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let store = try SQLiteSessionStore(path: path, for: .server)
            for first in 1...24 as ClosedRange<UInt64> {
                try await store.commit(adding(group(first, byteCount: 1 << 20)), for: nil)
            }
            func pageCount() async throws -> Int {
                try await store.database.read { try Int.fetchOne($0, sql: "PRAGMA page_count") } ?? 0
            }
            #expect(try await pageCount() > 24 * 256)
            for first in 1...24 as ClosedRange<UInt64> { try await store.commit(removing([first]), for: nil) }
            for first in 25...50 as ClosedRange<UInt64> {
                try await store.commit(adding(group(first)), for: nil)
                try await store.commit(removing([first]), for: nil)
            }
            #expect(try await pageCount() < 6 * 256)
        }
    }

    @Test func aFullDiskIsAnErrorAndNothingIsMade() async throws {
        try await withTemporaryPath("store.sqlite") { path in
            let store = try SQLiteSessionStore(path: path, for: .server)
            let pages = try await store.database.read { try Int.fetchOne($0, sql: "PRAGMA page_count") } ?? 0
            // SQLite's own limit says the same as a full disk.
            try await store.database.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA max_page_count = \(pages + 4)")
            }
            await #expect { try await store.commit(adding(group(1, byteCount: 1 << 20)), for: nil) } throws: { error in
                (error as? StoreError)?.code == .full
            }
            #expect(try await store.content(for: nil).next == 1)
            try await store.commit(adding(group(2)), for: nil)
            #expect(try await store.groups(for: nil, from: 1, byteCount: 9) == [group(2)])
        }
    }
}
#endif
