internal import LifelineMessages

/// A message type whose fields are listed, to be changed and read.
protocol FuzzedMessage: Message, FuzzedElement {
    static var fields: [Field<Self>] { get }
}

extension FuzzedMessage {
    static var emptyModel: Value { .message([:]) }

    static func make(_ choices: inout Choices, _ held: Held) -> (Self, Value) {
        var message = Self()
        var model = Value.message([:])
        for _ in 0..<choices.below(3) { message.change(&model, &choices, held) }
        return (message, model)
    }

    var model: Value {
        var model: [String: Value] = [:]
        for field in Self.fields { model[field.name] = field.read(self) }
        if !unknownFields.isEmpty { model[unknownFieldsName] = .bytes(unknownFields) }
        return .message(model)
    }

    mutating func change(_ model: inout Value, _ choices: inout Choices, _ held: Held) {
        let field = Self.fields[choices.below(Self.fields.count)]
        field.change(&self, &model.fields, &choices, held)
        if model.fields[field.name] != nil { field.removeAlternatives(from: &model.fields) }
    }

    static func merge(_ new: Value, into old: Value) -> Value {
        var merged = old.fields
        for field in fields {
            guard let value = new.fields[field.name] else { continue }
            merged[field.name] = merged[field.name].map { field.merge(value, $0) } ?? value
            field.removeAlternatives(from: &merged)
        }
        if case .bytes(let unknown)? = new.fields[unknownFieldsName] {
            guard case .bytes(let before) = merged[unknownFieldsName] ?? .bytes([]) else { fatalError() }
            merged[unknownFieldsName] = .bytes(before + unknown)
        }
        return .message(merged)
    }
}

extension Field where Message: FuzzedMessage {
    /// A oneof holds at most one member: setting this one clears the others.
    fileprivate func removeAlternatives(from model: inout [String: Value]) {
        guard let oneof else { return }
        for other in Message.fields where other.oneof == oneof && other.name != name { model[other.name] = nil }
    }
}

/// The name of a message's unknown fields in a model.
let unknownFieldsName = "unknown fields"
