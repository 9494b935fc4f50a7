internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

// A submessage that is there at most once.
extension SwiftProperty {
    func printMessage(to printer: inout SourcePrinter) {
        printProperty(ofType: type, to: &printer) { printer in
            let fields: String
            if case .oneof = presence, let isPresent {
                fields = "\(isPresent) ? \(value) : nil"
            } else {
                fields = value
            }
            printer.print("_read { yield \(type)(_reading: \(fields), in: _message) }")
            printMessageSetter(to: &printer)
            printMessageModifier(to: &printer)
        }
        printPresence(to: &printer)
    }

    private func printMessageSetter(to printer: inout SourcePrinter) {
        printer.print("set {")
        printer.withIndentation { printer in
            printer.print(
                "let fields = _mutableFields()",
                "\(mutableValue) = _message.copy(newValue)"
            )
            if case .oneof(let member) = presence {
                printer.print("fields.pointee.\(member).rawValue = \(field.number)")
            }
        }
        printer.print("}")
    }

    private func printMessageModifier(to printer: inout SourcePrinter) {
        printer.print("_modify {")
        printer.withIndentation { printer in
            printer.print("let fields = _mutableFields()")
            if case .oneof(let member) = presence {
                printer.print(
                    "if fields.pointee.\(member).rawValue != \(field.number) {",
                    "    \(mutableValue) = _message.create(\(type).self)",
                    "    fields.pointee.\(member).rawValue = \(field.number)",
                    "}"
                )
            } else {
                printer.print("if \(mutableValue) == nil { \(mutableValue) = _message.create(\(type).self) }")
            }
            printer.print(
                "let original = \(mutableValue)",
                "var lent = _message.lend(original, as: \(type).self)",
                "\(mutableValue) = nil",
                "defer {",
                "    let settled = _message.settle(&lent, from: original, as: Self._table)",
                "    \(place) = settled",
                "}",
                "yield &lent"
            )
        }
        printer.print("}")
    }
}
