internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

// Repeated fields and maps.
extension SwiftProperty {
    func printRepeated(to printer: inout SourcePrinter) {
        let list = context.valueType(of: field)
        printCollection(ofType: list, to: &printer) { "\(list)(_in: _message, \(value), count: \($0))" }
    }

    func printMap(to printer: inout SourcePrinter) {
        guard let (key, mapped) = field.messageType.mapKeyAndValue else { return }
        let types = "\(context.elementType(of: key)), \(context.elementType(of: mapped))"
        let map = "\(context.runtime("MapField"))<\(types)>"
        printCollection(ofType: map, to: &printer) { "\(map)(_in: _message, entries: \(value), count: \($0))" }
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
        printProperty(ofType: type, to: &printer) { printer in
            printer.print("_read { yield \(reading(count)) }")
            printChanging(as: "collection", to: &printer)
        }
    }
}
