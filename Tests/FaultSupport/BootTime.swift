internal import Glibc

/// A point on `CLOCK_BOOTTIME`, which all processes of a machine share: what one writes another can compare.
package struct BootTime: Hashable, Comparable, Sendable {
    package let nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    package static var now: BootTime {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return BootTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    package static func - (end: BootTime, start: BootTime) -> Duration {
        .nanoseconds(end.nanoseconds - start.nanoseconds)
    }

    package static func < (first: BootTime, second: BootTime) -> Bool {
        first.nanoseconds < second.nanoseconds
    }
}

extension Duration {
    /// The same as a number of milliseconds.
    package var milliseconds: Double { self / .milliseconds(1) }
}
