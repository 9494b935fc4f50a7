internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

// Repeated fields and maps.
extension SwiftProperty {
    func printRepeated(to printer: inout SourcePrinter) {
        if context.isForSwiftProtobuf { printConverted(to: "[\(type)]", as: "array", to: &printer) }
        let list = context.listType(of: field)
        printCollection(ofType: list, to: &printer) { "\(list)(_in: _message.untyped, \(settledValue), count: \($0))" }
    }

    func printMap(to printer: inout SourcePrinter) {
        guard let fields = field.messageType.mapKeyAndValue else { return }
        let (key, mapped) = (context.elementType(of: fields.key), context.elementType(of: fields.value))
        if context.isForSwiftProtobuf { printConverted(to: "[\(key): \(mapped)]", as: "dictionary", to: &printer) }
        let map = "\(context.runtime("MapField"))<\(key), \(mapped)>"
        printCollection(ofType: map, to: &printer) {
            "\(map)(_in: _message.untyped, entries: \(settledValue), count: \($0))"
        }
    }

    private func printCollection(
        ofType type: String,
        to printer: inout SourcePrinter,
        reading: (_ count: String) -> String
    ) {
        let count: String
        switch presence {
        case .repeated(let member), .map(let member): count = "_message.pointee.\(member)"
        default: return
        }
        let name = context.isForSwiftProtobuf ? swift.withField : swift.name
        printProperty(name, ofType: type, to: &printer) { printer in
            printer.print("_read { yield \(reading(count)) }")
            printChanging(as: "collection", to: &printer)
        }
    }

    /// Prints the property with a type of the standard library, converted from and to the field.
    private func printConverted(to type: String, as kind: String, to printer: inout SourcePrinter) {
        printProperty(swift.name, ofType: type, to: &printer) { printer in
            printer.print("get { _content[\(kind): \(tableIndex)] }")
            printChanging(as: kind, of: "_content", to: &printer)
        }
    }
}
