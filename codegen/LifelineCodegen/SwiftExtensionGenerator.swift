internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Writes the properties for a file's extensions in the messages that they extend, and a registry of the extensions.
struct SwiftExtensionGenerator {
    private let file: FileDescriptor
    private let schema: Schema
    private let context: SwiftContext

    init(file: FileDescriptor, schema: Schema, context: SwiftContext) {
        self.file = file
        self.schema = schema
        self.context = context
    }

    func print(to printer: inout SourcePrinter) {
        for field in file.allExtensions {
            guard let message = schema.message(of: field) else { continue }
            print(field, typeName: context.type(of: message), to: &printer)
        }
        printRegistry(to: &printer)
    }

    private func print(_ field: FieldDescriptor, typeName: String, to printer: inout SourcePrinter) {
        let names = context.swiftNames.property(field)
        let value = context.valueType(of: field)
        printer.print("extension \(context.extendedType(of: field)) {")
        printer.withIndentation { printer in
            printer.printComments(field.protoSourceCommentsWithDeprecation())
            printer.print(
                "\(context.modifier)var \(names.name): \(value) {",
                "    get { self[\(typeName).self] }",
                "    set { self[\(typeName).self] = newValue }",
                "}"
            )
            if field.isRepeated { return }
            printer.print(
                "/// Whether `\(names.name)` is set.",
                "\(context.modifier)var \(names.has): \(context.standard("Bool")) { hasExtension(\(typeName).self) }",
                "/// Clears `\(names.name)`. It then reads as its default.",
                "\(context.modifier)mutating func \(names.clear)() { clearExtension(\(typeName).self) }"
            )
        }
        printer.print("}", "")
    }

    private func printRegistry(to printer: inout SourcePrinter) {
        let registry = context.runtime("MessageRegistry")
        printer.print("/// The extensions that \(file.name) declares.")
        printer.print("\(context.modifier)let \(context.swiftNames.registry(of: file)) = \(registry)([")
        printer.withIndentation { printer in
            for field in file.allExtensions {
                guard let message = schema.message(of: field) else { continue }
                printer.print("\(context.type(of: message)).self,")
            }
        }
        printer.print("])", "")
    }
}
