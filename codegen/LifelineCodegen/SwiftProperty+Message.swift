internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

// A single submessage.
extension SwiftProperty {
    func printMessage(to printer: inout SourcePrinter) {
        printProperty(swift.name, ofType: type, to: &printer) { printer in
            let fields: String
            if case .oneof = presence, let isPresent {
                fields = "\(isPresent) ? \(value) : nil"
            } else {
                fields = value
            }
            if context.isForSwiftProtobuf {
                printer.print("get { _content.submessage(\(fields), at: \(Self.index(of: field))) }")
                printChanging(as: "message", of: "_content", to: &printer)
            } else {
                printer.print("_read { yield \(type)(_reading: \(fields), in: _message.untyped) }")
                printChanging(as: "message", to: &printer)
            }
        }
        printPresence(to: &printer)
    }
}
