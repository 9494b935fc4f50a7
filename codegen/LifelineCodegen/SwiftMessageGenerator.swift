internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Writes a message: its fields, its oneofs, and the types nested in it.
struct SwiftMessageGenerator {
    private let message: Descriptor
    private let context: SwiftContext

    init(message: Descriptor, context: SwiftContext) {
        self.message = message
        self.context = context
    }

    func print(to printer: inout SourcePrinter) {
        let modifier = context.modifier
        let field = context.extensionOf(message)
        let conformance = field == nil ? context.messageProtocol : context.runtime("MessageExtension")
        let comments = field?.protoSourceCommentsWithDeprecation() ?? message.protoSourceCommentsWithDeprecation()
        printer.printComments(comments)
        printer.print(
            "\(modifier)struct \(context.swiftNames.relativeName(message)): \(conformance) {"
        )
        printer.withIndentation { printer in
            for field in message.fields { printField(field, to: &printer) }
            for oneof in message.oneofs where !oneof.isOfOptionalField {
                SwiftOneofGenerator(oneof: oneof, context: context).print(to: &printer)
            }
            for type in message.enums { SwiftEnumGenerator(type: type, context: context).print(to: &printer) }
            for nested in message.messages where !nested.options.mapEntry && context.extensionOf(nested) == nil {
                SwiftMessageGenerator(message: nested, context: context).print(to: &printer)
            }
            printExtensions(to: &printer)
            if let field { printer.print("\(modifier)typealias _Extended = \(context.extendedType(of: field))") }
            printer.print(
                "\(modifier)typealias _Fields = \(context.options.cTarget).\(context.names.type(message))",
                "\(modifier)static var _table: \(context.standard("UnsafePointer"))<"
                    + "\(context.runtime("_MessageTable"))> { \(context.names.prefix(message))__get_table() }"
            )
            printContent(to: &printer)
        }
        printer.print("}", "")
    }

    /// Prints the stored property and the initializers.
    private func printContent(to printer: inout SourcePrinter) {
        let modifier = context.modifier
        let reference = "\(context.runtime("_MessageReference"))<_Fields>"
        let mutableFields =
            "\(context.inlinable)\(modifier)mutating func _mutableFields() -> \(context.standard("UnsafeMutablePointer"))<_Fields> "
            + "{ \(context.message).mutableFields(as: Self._table) }"
        guard context.isForSwiftProtobuf else {
            printer.print(
                "\(modifier)var _message: \(reference)",
                mutableFields,
                "\(modifier)init(_message: \(reference)) { self._message = _message }",
                "\(modifier)init() { _message = Self._emptyMessage }"
            )
            return
        }
        let content = "\(SwiftContext.compatibility)._MessageContent"
        printer.print(
            "\(modifier)var _content: \(content)<_Fields>",
            "\(modifier)var _message: \(reference) {",
            "    get { _content.settled }",
            "    _modify { yield &_content.settled }",
            "}",
            mutableFields,
            "\(modifier)init(_message: \(reference)) { _content = \(content)(_message) }",
            "\(modifier)init() { _content = \(content)(Self._emptyMessage) }"
        )
    }

    /// Prints the types of the extensions that are declared in the message.
    private func printExtensions(to printer: inout SourcePrinter) {
        let extensions = message.messages.filter { context.extensionOf($0) != nil }
        if extensions.isEmpty { return }
        printer.print("\(context.modifier)enum \(SwiftNames.extensionScope) {")
        printer.withIndentation { printer in
            for nested in extensions { SwiftMessageGenerator(message: nested, context: context).print(to: &printer) }
        }
        printer.print("}", "")
    }

    private func printField(_ field: FieldDescriptor, to printer: inout SourcePrinter) {
        let property = SwiftProperty(field: field, context: context)
        if field.isMap {
            property.printMap(to: &printer)
        } else if field.isRepeated {
            property.printRepeated(to: &printer)
        } else if field.isMessage {
            property.printMessage(to: &printer)
        } else {
            property.printScalar(to: &printer)
        }
        printer.print("")
    }
}
