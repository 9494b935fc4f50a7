internal import Glibc
package import LifelineCore

extension MonotonicTime {
    /// Returns the present time, on the clock that also runs while the machine sleeps.
    package static func now() -> MonotonicTime {
        var time = timespec()
        // This cannot fail: the clock exists since Linux 2.6.39, and the address is valid.
        clock_gettime(CLOCK_BOOTTIME, &time)
        return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
