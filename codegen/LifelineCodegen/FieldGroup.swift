internal import SwiftProtobufPluginLibrary

/// Neighbouring fields whose absence can be checked together: see LifelineFieldGroup in lifeline_table.h.
struct FieldGroup {
    /// The first field's index in the table.
    let firstIndex: Int
    /// The fields, in the order of the struct.
    private let fields: [FieldDescriptor]

    /// Messages with fewer fields have no groups: looking at each field is as fast.
    private static let smallestFieldCount = 24
    /// A compromise between the fields to look at in a mostly empty message, and the cost of a group.
    private static let size = 8

    /// The groups of a message with these fields, which are ascending by number. A message with few fields has none.
    static func groups(of message: Descriptor, sortedFields: [FieldDescriptor]) -> [FieldGroup] {
        guard sortedFields.count >= smallestFieldCount else { return [] }
        return stride(from: 0, to: sortedFields.count, by: size).map { first in
            let fields = sortedFields[first..<min(first + size, sortedFields.count)]
            return FieldGroup(firstIndex: first, fields: fields.sorted { $0.structPosition < $1.structPosition })
        }
    }

    /// The member at the start of the group's bytes. A field's presence comes before the field.
    func firstMember(in names: CNames) -> String {
        guard let field = fields.first else { return "base" }
        return field.presence(in: names).quantifier ?? names.member(field)
    }

    func lastMember(in names: CNames) -> String {
        names.member(fields[fields.count - 1])
    }
}

extension FieldDescriptor {
    /// The position of the member in the structs of protoc-gen-c: in the order of declaration, with the oneofs last.
    fileprivate var structPosition: (oneof: Int, declaration: Int) {
        (containingOneof.map { $0.index + 1 } ?? 0, index)
    }
}
