internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

// Repeated fields and maps.
extension SwiftProperty {
    func printRepeated(to printer: inout SourcePrinter) {
        guard case .repeated(let count) = presence else { return }
        let (readCount, writtenCount) = ("_message.pointee.\(count)", "fields.pointee.\(count)")
        let list = context.valueType(of: field)
        printProperty(ofType: list, to: &printer) { printer in
            printer.print("_read { yield \(list)(_in: _message, \(value), count: \(readCount)) }")
            printer.print(
                "set {",
                "    let fields = _mutableFields()",
                "    let list = _message.copy(newValue)",
                "    \(mutableValue) = list._elements",
                "    \(writtenCount) = list.count",
                "}",
                "_modify {",
                "    let fields = _mutableFields()",
                "    var list = _message.lend(\(mutableValue), count: \(writtenCount), of: \(type).self)",
                "    (\(mutableValue), \(writtenCount)) = (nil, 0)",
                "    defer {",
                "        _message.settle(&list, as: Self._table)",
                "        \(place) = list._elements",
                "        _message.\(writtenCount) = list.count",
                "    }",
                "    yield &list",
                "}"
            )
        }
    }

    func printMap(to printer: inout SourcePrinter) {
        guard case .map(let count) = presence, let (key, mapped) = field.messageType.mapKeyAndValue else { return }
        let (readCount, writtenCount) = ("_message.pointee.\(count)", "fields.pointee.\(count)")
        let map =
            "\(context.runtime("MapField"))<\(context.elementType(of: key)), \(context.elementType(of: mapped))>"
        printProperty(ofType: map, to: &printer) { printer in
            printer.print("_read { yield \(map)(_in: _message, entries: \(value), count: \(readCount)) }")
            printer.print(
                "set {",
                "    let fields = _mutableFields()",
                "    let map = _message.copy(newValue)",
                "    \(mutableValue) = map._typedEntries()",
                "    \(writtenCount) = map.count",
                "}",
                "_modify {",
                "    let fields = _mutableFields()",
                "    var map = _message.lend(entries: \(mutableValue), count: \(writtenCount), as: \(map).self)",
                "    (\(mutableValue), \(writtenCount)) = (nil, 0)",
                "    defer {",
                "        _message.settle(&map, as: Self._table)",
                "        \(place) = map._typedEntries()",
                "        _message.\(writtenCount) = map.count",
                "    }",
                "    yield &map",
                "}"
            )
        }
    }
}
