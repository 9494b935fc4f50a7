internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Writes an enum: open, with `UNRECOGNIZED`, or closed, as its file declares.
struct SwiftEnumGenerator {
    private let type: EnumDescriptor
    private let context: SwiftContext
    private let isOpen: Bool
    /// Values with a case of their own; the others are aliases.
    private let cases: [EnumValueDescriptor]

    init(type: EnumDescriptor, context: SwiftContext) {
        self.type = type
        self.context = context
        isOpen = !type.isClosed
        var numbers: Set<Int32> = []
        cases = type.values.filter { numbers.insert($0.number).inserted }
    }

    private func name(_ value: EnumValueDescriptor) -> String { context.caseName(value) }
    private func dotted(_ value: EnumValueDescriptor) -> String { context.dottedCaseName(value) }

    func print(to printer: inout SourcePrinter) {
        let int = context.standard("Int")
        printer.printComments(type.protoSourceCommentsWithDeprecation())
        printer.print(
            "\(context.modifier)enum \(context.swiftNames.relativeName(type)): \(context.enumProtocol) {"
        )
        printer.withIndentation { printer in
            for value in cases {
                printer.printComments(value.protoSourceCommentsWithDeprecation())
                printer.print("case \(name(value)) // = \(value.number)")
            }
            if isOpen {
                printer.print("/// A number that the .proto file does not declare.", "case UNRECOGNIZED(\(int))")
            }
            printer.print("")
            printAliases(to: &printer)
            printer.print("\(context.modifier)init() { self = \(dotted(type.values[0])) }", "")
            printInitializer(to: &printer, int: int)
            printRawValue(to: &printer, int: int)
            let all = cases.map(dotted).joined(separator: ", ")
            printer.print("\(context.modifier)static let allCases: [Self] = [\(all)]")
        }
        printer.print("}", "")
    }

    private func printAliases(to printer: inout SourcePrinter) {
        // Two values may have the same Swift name, which then stands for both.
        var names = Set(cases.map(name))
        let aliases = type.values.filter { names.insert(name($0)).inserted }
        for alias in aliases {
            guard let original = cases.first(where: { $0.number == alias.number }) else { continue }
            printer.printComments(alias.protoSourceCommentsWithDeprecation())
            printer.print("\(context.modifier)static let \(name(alias)): Self = \(dotted(original))")
        }
        if !aliases.isEmpty { printer.print("") }
    }

    private func printInitializer(to printer: inout SourcePrinter, int: String) {
        printer.print("\(context.modifier)init?(rawValue: \(int)) {")
        printer.withIndentation { printer in
            printer.print("switch rawValue {")
            for value in cases { printer.print("case \(value.number): self = \(dotted(value))") }
            printer.print("default: \(isOpen ? "self = .UNRECOGNIZED(rawValue)" : "return nil")", "}")
        }
        printer.print("}", "")
    }

    private func printRawValue(to printer: inout SourcePrinter, int: String) {
        printer.print("\(context.modifier)var rawValue: \(int) {")
        printer.withIndentation { printer in
            printer.print("switch self {")
            for value in cases { printer.print("case \(dotted(value)): \(value.number)") }
            if isOpen { printer.print("case .UNRECOGNIZED(let rawValue): rawValue") }
            printer.print("}")
        }
        printer.print("}", "")
    }
}
