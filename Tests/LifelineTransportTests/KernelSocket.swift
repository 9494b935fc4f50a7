import Foundation

/// One of IPv4's TCP sockets, as the kernel's table has it.
struct KernelSocket {
    /// `TCP_SYN_SENT` and the like of include/net/tcp_states.h.
    enum State: String {
        case connecting = "02"
        case lastAcknowledgement = "09"
    }

    let localPort: Int
    let remotePort: Int
    /// Nil for the others.
    let state: State?
    /// Whether it waits for room at the peer: it probes for some, which it does only when nothing is on its way, or it
    /// retransmits, which it does later than the peer would have acknowledged what it took.
    let isStuck: Bool

    static var all: [KernelSocket] {
        get throws {
            // By a handle: what reads a file whole goes by its size, which is 0 here.
            let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/net/tcp"))
            let table = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
            return table.split(separator: "\n").dropFirst().compactMap { KernelSocket($0.split(separator: " ")) }
        }
    }

    /// Waits until the table has a socket like this. It gives other tasks their turn, and ends with this one.
    static func wait(for isWanted: (KernelSocket) -> Bool) async throws {
        while try !all.contains(where: isWanted) {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Number, local address, remote address, state, queues, timer:when, retransmissions.
    private init?(_ columns: [Substring]) {
        guard columns.count > 6, let localPort = Int(columns[1].suffix(4), radix: 16),
            let remotePort = Int(columns[2].suffix(4), radix: 16)
        else { return nil }
        self.localPort = localPort
        self.remotePort = remotePort
        state = State(rawValue: String(columns[3]))
        isStuck = columns[5].hasPrefix("04:") || UInt64(columns[6], radix: 16) ?? 0 > 0
    }
}
