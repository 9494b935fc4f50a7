import Foundation
import SwiftProtobuf

/// The program's output, and whether all checks passed.
struct Report: Sendable {
    private(set) var lines: [String] = []
    private(set) var checkCount = 0
    private(set) var failures: [String] = []

    mutating func begin(_ section: String) {
        lines.append("== \(section)")
    }

    mutating func add(_ label: String, _ value: some CustomStringConvertible) {
        lines.append("\(label): \(value)")
    }

    mutating func check(_ isTrue: Bool, _ expectation: String) {
        checkCount += 1
        if !isTrue { failures.append(expectation) }
    }

    mutating func finish() -> String {
        begin("Result")
        lines += failures.map { "FAILED: \($0)" }
        add("Checks", "\(checkCount), \(failures.count) failed")
        return lines.joined(separator: "\n")
    }
}

extension Data {
    var hex: String { map { String(format: "%02x", $0) }.joined() }

    /// The FNV-1a hash: short enough to compare by eye.
    var digest: String {
        let hash = reduce(into: UInt64(0xcbf2_9ce4_8422_2325)) { hash, byte in
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
        }
        return String(format: "%016llx", hash)
    }
}

/// A clock that every run reads alike.
struct Clock {
    private(set) var now = Date(timeIntervalSince1970: 1_767_225_600)

    mutating func advance(by seconds: TimeInterval) -> Google_Protobuf_Timestamp {
        now.addTimeInterval(seconds)
        return Google_Protobuf_Timestamp(date: now)
    }
}
