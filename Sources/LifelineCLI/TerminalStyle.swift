internal import Glibc
internal import LifelineCore

/// The styles of lines for people on a terminal. Without a terminal on standard error, or with NO_COLOR set, they have
/// no color.
enum TerminalStyle: String {
    /// A step during the work, which matters less than the results.
    case step = "\u{1b}[2m"
    /// The error of a command.
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

/// Reports a step in a line of standard error.
func tellStep(_ text: String) { writeErrorLine(TerminalStyle.step.line(stepLine(text))) }

/// Returns the line for a step. A peer's text in it is escaped for the terminal.
func stepLine(_ text: String) -> String { "lifeline: \(text)".escaped(limit: .max) }
