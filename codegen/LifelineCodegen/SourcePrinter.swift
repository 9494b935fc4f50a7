/// Collects source code line by line, indented.
///
/// SwiftProtobufPluginLibrary's CodePrinter copies its whole text for each line, which takes 30 s for 3,000 messages.
struct SourcePrinter {
    private(set) var content = ""
    private var indentation = ""

    /// Prints each of `lines`, which have no line breaks.
    mutating func print(_ lines: String...) {
        for line in lines { printLine(line) }
    }

    /// Prints doc comments, which already end with a line break.
    mutating func printComments(_ comments: String) {
        for line in comments.split(separator: "\n") { printLine(String(line)) }
    }

    /// Indents what `body` prints.
    mutating func withIndentation(body: (inout SourcePrinter) -> Void) {
        indentation += "    "
        body(&self)
        indentation.removeLast(4)
    }

    private mutating func printLine(_ line: String) {
        if !line.isEmpty {
            content += indentation
            content += line
        }
        content += "\n"
    }
}
