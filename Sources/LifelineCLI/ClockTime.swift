internal import Glibc

extension timespec {
    static var now: timespec {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time
    }

    /// The local time of day: 14:03:12.123.
    var clockTime: String {
        var (seconds, calendar) = (tv_sec, tm())
        localtime_r(&seconds, &calendar)
        let parts = [calendar.tm_hour, calendar.tm_min, calendar.tm_sec].map { padded(Int($0), to: 2) }
        return parts.joined(separator: ":") + "." + padded(tv_nsec / 1_000_000, to: 3)
    }
}

/// Returns a number with this many decimals, at least one.
func decimal(_ number: Double, places: Int) -> String {
    let scale = (1...places).reduce(1) { scale, _ in scale * 10 }
    let scaled = Int((number * Double(scale)).rounded())
    return "\(scaled / scale).\(padded(scaled % scale, to: places))"
}

/// Returns a number with leading zeros.
func padded(_ number: Int, to width: Int) -> String {
    String(repeating: "0", count: max(0, width - "\(number)".count)) + "\(number)"
}
