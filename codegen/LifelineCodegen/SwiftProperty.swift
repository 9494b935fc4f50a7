internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Writes the property of one field, and the members for its presence (`hasX`, `clearX()`).
///
/// The runtime's MessageReference*.swift document the functions that the accessors call. Each kind of field has a file.
struct SwiftProperty {
    let field: FieldDescriptor
    let context: SwiftContext
    let presence: FieldPresence
    /// The names of the property and its related members.
    let swift: SwiftNames.Property
    /// The value's type, or that of an element.
    let type: String
    /// The member of the struct that has the value: `member(of:)` of the variable that points to the struct.
    private let memberName: String

    init(field: FieldDescriptor, context: SwiftContext) {
        self.field = field
        self.context = context
        presence = field.presence(in: context.names)
        swift = context.swiftNames.property(field)
        type = context.elementType(of: field)
        memberName = context.names.member(field)
    }

    /// The value, for reading.
    var value: String { "\(context.message).pointee.\(memberName)" }
    /// The value of a list, after all changes were stored.
    var settledValue: String { "_message.pointee.\(memberName)" }
    /// The value, after `let fields = _mutableFields()`.
    var mutableValue: String { "fields.pointee.\(memberName)" }

    /// The arguments with which functions of the runtime find the field.
    var tableIndex: String { "\(Self.index(of: field)), of: Self._table" }

    static func index(of field: FieldDescriptor) -> Int {
        // Fields are ordered by their numbers in the table.
        field.containingType.fields.count { $0.number < field.number }
    }

    /// Prints the changing accessors of everything but numbers, text and bytes.
    func printChanging(as kind: String, of content: String = "_message.untyped", to printer: inout SourcePrinter) {
        printer.print(
            "set { \(content)[\(kind): \(tableIndex)] = newValue }",
            "\(context.inlinable)_modify { yield &\(content)[\(kind): \(tableIndex)] }"
        )
    }

    /// Prints `var name: type {`, then what `accessors` prints, then `}`.
    func printProperty(
        _ name: String,
        ofType type: String,
        to printer: inout SourcePrinter,
        accessors: (inout SourcePrinter) -> Void
    ) {
        printer.printComments(field.protoSourceCommentsWithDeprecation())
        printer.print("\(context.modifier)var \(name): \(type) {")
        printer.withIndentation(body: accessors)
        printer.print("}")
    }

    /// An expression that tells whether the field is set; nil if only its value tells.
    var isPresent: String? {
        switch presence {
        case .flag(let member): "\(context.message).pointee.\(member) != 0"
        case .oneof(let member): "\(context.message).pointee.\(member).rawValue == \(field.number)"
        case .pointer: "\(value) != nil"
        case .implicit, .repeated, .map, .always: nil
        }
    }

    /// Prints `hasX` and `clearX()`. Members of real oneofs have none: the oneof tells which one is set.
    func printPresence(to printer: inout SourcePrinter) {
        guard let isPresent, field.realContainingOneof == nil else { return }
        let clearing =
            switch presence {
            case .flag(let member): "_mutableFields().pointee.\(member) = 0"
            case .oneof(let member): "\(context.mutableFields).pointee.\(member).rawValue = 0"
            default: "\(context.mutableFields).pointee.\(memberName) = nil"
            }
        printer.print(
            "/// Whether `\(swift.name)` is set.",
            "\(context.modifier)var \(swift.has): \(context.standard("Bool")) { \(isPresent) }",
            "/// Clears `\(swift.name)`. It then reads as its default.",
            "\(context.modifier)mutating func \(swift.clear)() { \(clearing) }"
        )
    }
}
