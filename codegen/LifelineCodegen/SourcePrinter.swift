/// Collects source code line by line, indented.
///
/// SwiftProtobufPluginLibrary's CodePrinter copies all that it has at each line: half a minute for 3,000 messages.
struct SourcePrinter {
    private(set) var content = ""
    private var indentation = ""

    /// Prints each of `lines`, which have no line breaks in them.
    mutating func print(_ lines: String...) {
        for line in lines { printLine(line) }
    }

    /// Prints doc comments, which end with a line break of their own.
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
