internal import SwiftProtobufPluginLibrary

/// Neighbouring fields whose presence can be ruled out together: see LifelineFieldGroup in lifeline_table.h.
struct FieldGroup {
    /// The first field's index in the table.
    let firstIndex: Int
    /// The fields, in the order of the struct.
    private let fields: [FieldDescriptor]

    /// Messages with fewer fields do without: looking at each is as quick.
    private static let smallestFieldCount = 24
    /// What a mostly empty message's few fields make it look at, against what a group costs.
    private static let size = 8

    /// The groups of a message with these fields, which are ascending by number; none where it has few.
    static func groups(of message: Descriptor, sortedFields: [FieldDescriptor]) -> [FieldGroup] {
        guard sortedFields.count >= smallestFieldCount else { return [] }
        return stride(from: 0, to: sortedFields.count, by: size).map { first in
            let fields = sortedFields[first..<min(first + size, sortedFields.count)]
            return FieldGroup(firstIndex: first, fields: fields.sorted { $0.structPosition < $1.structPosition })
        }
    }

    /// The member that the group's bytes begin with: what says whether a field is there comes before the field.
    func firstMember(in names: CNames) -> String {
        guard let field = fields.first else { return "base" }
        return field.presence(in: names).quantifier ?? names.member(field)
    }

    func lastMember(in names: CNames) -> String {
        names.member(fields[fields.count - 1])
    }
}

extension FieldDescriptor {
    /// Where protoc-gen-c puts the member: in the order of declaration, with the oneofs behind all others.
    fileprivate var structPosition: (oneof: Int, declaration: Int) {
        (containingOneof.map { $0.index + 1 } ?? 0, index)
    }
}
