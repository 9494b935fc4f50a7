internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Writes a oneof: an enum with a case for each member, and the property that holds one of them.
struct SwiftOneofGenerator {
    private let oneof: OneofDescriptor
    private let context: SwiftContext

    init(oneof: OneofDescriptor, context: SwiftContext) {
        self.oneof = oneof
        self.context = context
    }

    func print(to printer: inout SourcePrinter) {
        let type = context.swiftNames.type(oneof)
        let property = context.swiftNames.property(oneof)
        let caseMember = context.names.caseMember(oneof)
        let members = oneof.fields.map { field in
            let type = context.elementType(of: field)
            let value = "\(context.message).pointee.\(context.names.member(field))"
            return (
                number: field.number, type: type,
                read: read(field, type, from: value),
                property: context.swiftNames.property(field),
                comments: field.protoSourceCommentsWithDeprecation()
            )
        }
        printer.printComments(oneof.protoSourceComments())
        printer.print("\(context.modifier)var \(property): \(type)? {")
        printer.withIndentation { printer in
            printer.print("get {", "    switch \(context.message).pointee.\(caseMember).rawValue {")
            for member in members {
                printer.print("    case \(member.number): \(member.property.dotted)(\(member.read))")
            }
            printer.print("    default: nil", "    }", "}", "set {", "    switch newValue {")
            for member in members {
                printer.print("    case \(member.property.dotted)(let value)?: self.\(member.property.name) = value")
            }
            printer.print(
                "    case nil: \(context.mutableFields).pointee.\(caseMember).rawValue = 0",
                "    }",
                "}"
            )
        }
        printer.print("}", "")
        printer.print("/// The possible values of `\(property)`.")
        printer.print(
            "\(context.modifier)enum \(type): \(context.standard("Hashable")), \(context.standard("Sendable")) {"
        )
        printer.withIndentation { printer in
            for member in members {
                printer.printComments(member.comments)
                printer.print("case \(member.property.name)(\(member.type))")
            }
        }
        printer.print("}", "")
    }

    private func read(_ field: FieldDescriptor, _ type: String, from value: String) -> String {
        guard field.isMessage else { return "self.\(context.swiftNames.property(field).name)" }
        if context.isForSwiftProtobuf {
            return "_content.submessage(\(value), at: \(SwiftProperty.index(of: field))) as \(type)"
        }
        // A submessage's accessor would return a borrowed value, which would then be copied.
        return "\(type)(_reading: \(value), in: _message.untyped)"
    }
}
