internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

// Single numbers, enums, strings and bytes.
extension SwiftProperty {
    func printScalar(to printer: inout SourcePrinter) {
        printProperty(swift.name, ofType: type, to: &printer) { printer in
            if let isPresent {
                let standIn = SwiftLiteral.defaultValue(of: field, in: context)
                let value = field.type == .bytes ? context.bytes(standIn) : standIn
                printer.print("get { \(isPresent) ? \(loaded) : \(value) }")
            } else {
                printer.print("get { \(loaded) }")
            }
            printSetter(to: &printer)
        }
        printPresence(to: &printer)
        if isBuffer { printSpan(to: &printer) }
    }

    /// Prints the method that gives access to text or bytes without a copy.
    private func printSpan(to printer: inout SourcePrinter) {
        let isText = field.type == .string
        let span = isText ? context.standard("UTF8Span") : "\(context.standard("Span"))<\(context.standard("UInt8"))>"
        let copyable = context.standard("Copyable")
        printer.print(
            "/// Calls `body` with the \(isText ? "text" : "bytes") of `\(swift.name)`, without a copy.",
            "\(context.modifier)func \(swift.withSpan)<Result: ~\(copyable), Failure: \(context.standard("Error"))>("
                + "_ body: (\(span)) throws(Failure) -> Result) throws(Failure) -> Result {"
        )
        printer.withIndentation { printer in
            if let isPresent {
                let standIn = SwiftLiteral.defaultValue(of: field, in: context)
                let bytes = standIn == "[]" ? "[\(context.standard("UInt8"))]()" : standIn
                let text = "\(context.message).untyped.withUTF8Span(ofDefault: \(standIn), body)"
                let call = isText ? text : "body(\(bytes).span)"
                printer.print("guard \(isPresent) else { return try \(call) }")
            }
            printer.print("return try \(context.message).untyped.with\(isText ? "UTF8Span" : "Span")(\(value), body)")
        }
        printer.print("}")
    }

    /// The Swift value of the struct's member.
    private var loaded: String {
        switch field.type {
        case .bool: "\(value) != 0"
        case .enum: "\(type)._load(\(value))"
        case .string: "\(context.message).untyped.string(\(value))"
        case .bytes: "\(context.message).untyped.\(context.isForSwiftProtobuf ? "data" : "bytes")(\(value))"
        default: value
        }
    }

    private func printSetter(to printer: inout SourcePrinter) {
        if isBuffer {
            let message = isOneofMember ? context.presence : context.message
            printer.print("set { \(message).untyped.assign(newValue, to: \(tableIndex)) }")
            return
        }
        let presenceMark =
            switch presence {
            case .flag(let member): "fields.pointee.\(member) = 1"
            case .oneof(let member): "fields.pointee.\(member).rawValue = \(field.number)"
            case .implicit, .pointer, .repeated, .map, .always: ""
            }
        guard !presenceMark.isEmpty else {
            let place = "_mutableFields().pointee.\(context.names.member(field))"
            printer.print("set { \(place) = \(stored) }")
            // In place: the compiler's own `_modify` would read and write.
            if isStoredAsItIs { printer.print("_modify { yield &\(place) }") }
            return
        }
        printer.print(
            "set {",
            "    let fields = \(isOneofMember ? context.mutableFields : "_mutableFields()")",
            "    \(presenceMark)",
            "    \(mutableValue) = \(stored)",
            "}"
        )
    }

    private var isOneofMember: Bool {
        if case .oneof = presence { true } else { false }
    }

    private var isBuffer: Bool { field.type == .string || field.type == .bytes }

    /// Whether the struct's member has the property's type.
    private var isStoredAsItIs: Bool { loaded == value && stored == "newValue" }

    /// The value to store in the struct's member.
    private var stored: String {
        switch field.type {
        case .bool: "newValue ? 1 : 0"
        case .enum: "newValue._cValue"
        default: "newValue"
        }
    }
}
