internal import Glibc
internal import LifelineCore

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

/// Tells of a step, in a line of standard error.
func tellStep(_ text: String) { writeErrorLine(TerminalStyle.step.line(stepLine(text))) }

/// The line that tells of a step. Whatever a peer has said in it, a terminal shows it as letters.
func stepLine(_ text: String) -> String { "lifeline: \(text)".escaped(limit: .max) }
