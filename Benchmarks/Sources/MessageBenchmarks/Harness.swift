internal import Glibc

/// Times many cases in turns, so that other work on the machine disturbs all of them equally.
struct Harness {
    /// The number of turns of each case.
    var rounds: Int
    /// The duration of a turn in nanoseconds.
    var turn: Double

    static let thorough = Harness(rounds: 11, turn: 8e6)
    static let quick = Harness(rounds: 3, turn: 1e6)

    /// The measured function and the name of a case.
    struct Entry<Name> {
        let name: Name
        let pass: () throws -> UInt64
    }

    /// The median time of a pass of each case, in nanoseconds.
    func medians<Name>(of entries: [Entry<Name>]) throws -> [(name: Name, nanoseconds: Double)] {
        let passCounts = try entries.map { try passesPerTurn(of: $0.pass) }
        var times = entries.map { _ in [Double]() }
        for _ in 0..<rounds {
            for (index, entry) in entries.enumerated() {
                let time = try self.time(of: entry.pass, count: passCounts[index])
                times[index].append(time / Double(passCounts[index]))
            }
        }
        return zip(entries, times).map { ($0.name, $1.sorted()[rounds / 2]) }
    }

    /// The number of passes in a turn. Finding it also warms up caches and branch predictors.
    private func passesPerTurn(of pass: () throws -> UInt64) throws -> Int {
        var count = 1
        while true {
            let time = try self.time(of: pass, count: count)
            if time > turn / 4 { return max(1, Int(Double(count) * turn / time)) }
            count *= 4
        }
    }

    private func time(of pass: () throws -> UInt64, count: Int) throws -> Double {
        let expected = try pass()
        var sum: UInt64 = 0
        let start = threadTime()
        for _ in 0..<count { sum &+= try pass() }
        let end = threadTime()
        precondition(sum == expected &* UInt64(count), "A pass does not do the same each time")
        return end - start
    }

    /// The processor time of this thread, in nanoseconds: it does not run while another process does.
    private func threadTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }
}
