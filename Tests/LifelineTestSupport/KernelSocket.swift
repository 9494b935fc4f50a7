internal import Foundation

/// An IPv4 TCP socket in the kernel's table.
package struct KernelSocket: Sendable {
    /// `TCP_SYN_SENT` and the like of include/net/tcp_states.h.
    package enum State: String, Sendable {
        case connecting = "02"
        case lastAcknowledgement = "09"
        case listening = "0A"
    }

    package let localPort: Int
    package let remotePort: Int
    /// Nil for the others.
    package let state: State?
    /// Whether it waits for room at the peer. It probes for room, which it does only when nothing is on its way, or it
    /// retransmits, which it does only after the peer would have acknowledged.
    package let isStuck: Bool
    /// Whether the peer has acknowledged all that was sent.
    package let isAcknowledged: Bool
    private let inode: Substring

    package static var all: [KernelSocket] {
        get throws {
            // Uses a handle, because reading a whole file uses its size, which is 0 here.
            let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/net/tcp"))
            let table = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
            return table.split(separator: "\n").dropFirst().compactMap { KernelSocket($0.split(separator: " ")) }
        }
    }

    /// Waits until the table has a matching socket. Yields to other tasks, and ends when this task is cancelled.
    package static func wait(for isWanted: (KernelSocket) -> Bool) async throws {
        while try !all.contains(where: isWanted) {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Whether a descriptor of a process refers to it. Between fork and exec, a child has all of this process's sockets
    /// for a moment.
    ///
    /// - Parameter process: its number. Default: this one.
    package func isHeld(by process: String = "self") -> Bool {
        let folder = "/proc/\(process)/fd"
        // The process may end meanwhile, or close its descriptors.
        return ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).contains {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")) == "socket:[\(inode)]"
        }
    }

    /// Number, local address, remote address, state, queues, timer:when, retransmissions, user, timeout, inode.
    private init?(_ columns: [Substring]) {
        guard columns.count > 9, let localPort = Int(columns[1].suffix(4), radix: 16),
            let remotePort = Int(columns[2].suffix(4), radix: 16)
        else { return nil }
        self.localPort = localPort
        self.remotePort = remotePort
        inode = columns[9]
        state = State(rawValue: String(columns[3]))
        isAcknowledged = columns[4].hasPrefix("00000000:")
        isStuck = columns[5].hasPrefix("04:") || UInt64(columns[6], radix: 16) ?? 0 > 0
    }
}
