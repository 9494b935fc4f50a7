internal import Glibc

/// How lines for people look on a terminal. Where standard error is none, and where NO_COLOR is set, they have no color.
enum TerminalStyle: String {
    /// What goes on meanwhile, which matters less than the results.
    case step = "\u{1b}[2m"
    /// Why a command fails.
    case error = "\u{1b}[31m"

    private static let isUsed = isInteractive && variable("NO_COLOR").isEmpty && variable("TERM") != "dumb"

    /// Returns a line of standard error in this style. Its text must not control the terminal itself.
    func line(_ text: String) -> String {
        Self.isUsed ? "\(rawValue)\(text)\u{1b}[0m" : text
    }

    private static func variable(_ name: String) -> String {
        getenv(name).map { String(cString: $0) } ?? ""
    }
}
