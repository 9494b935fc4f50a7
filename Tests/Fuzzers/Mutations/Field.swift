/// One field of a message type: how to read it, and how to change it along with its model.
struct Field<Message> {
    let name: String
    /// The oneof that it is a member of.
    let oneof: String?
    /// Its value; nil if it is absent.
    let read: (Message) -> Value?
    let change: (inout Message, inout [String: Value], inout Choices, Held) -> Void
    /// Its value after the first value was merged into the second.
    let merge: (Value, Value) -> Value
}

extension Field {
    /// A field that is present if it differs from its type's default: proto3's scalars, repeated fields and maps.
    static func implicit<Content: Fuzzed>(
        _ name: String,
        _ path: WritableKeyPath<Message, Content>,
        inPlace: @escaping (inout Message, (inout Content) -> Void) -> Void
    ) -> Field {
        make(name, path, oneof: nil, isPresent: nil, clear: { $0[keyPath: path] = Content() }, inPlace: inPlace)
    }

    /// A field with a `has` and a `clear`.
    static func explicit<Content: Fuzzed>(
        _ name: String,
        _ path: WritableKeyPath<Message, Content>,
        has: @escaping (Message) -> Bool,
        clear: @escaping (inout Message) -> Void,
        inPlace: @escaping (inout Message, (inout Content) -> Void) -> Void
    ) -> Field {
        make(name, path, oneof: nil, isPresent: has, clear: clear, inPlace: inPlace)
    }

    /// A member of the oneof `oneof`, which is present if that `holds` it. Clearing one clears them all.
    static func member<Content: Fuzzed, OneOf>(
        _ name: String,
        of oneof: WritableKeyPath<Message, OneOf?>,
        _ path: WritableKeyPath<Message, Content>,
        isHeld: @escaping (OneOf) -> Bool,
        inPlace: @escaping (inout Message, (inout Content) -> Void) -> Void
    ) -> Field {
        make(
            name,
            path,
            oneof: "\(oneof)",
            isPresent: { $0[keyPath: oneof].map(isHeld) ?? false },
            clear: { $0[keyPath: oneof] = nil },
            inPlace: inPlace
        )
    }

    private static func make<Content: Fuzzed>(
        _ name: String,
        _ path: WritableKeyPath<Message, Content>,
        oneof: String?,
        isPresent: ((Message) -> Bool)?,
        clear: @escaping (inout Message) -> Void,
        inPlace: @escaping (inout Message, (inout Content) -> Void) -> Void
    ) -> Field {
        let absent = Content.emptyModel

        func read(_ message: Message) -> Value? {
            guard let isPresent else {
                let value = message[keyPath: path].model
                return value == absent ? nil : value
            }
            if isPresent(message) { return message[keyPath: path].model }
            // Not by their models, because an absent message has infinitely many absent messages below it.
            check(message[keyPath: path] == Content(), "\(name) is absent, but does not read as its default")
            return nil
        }

        func change(
            _ message: inout Message,
            _ fields: inout [String: Value],
            _ choices: inout Choices,
            _ held: Held
        ) {
            let before = fields[name] ?? absent
            var after = before
            switch choices.below(8) {
            case 0:
                if fields[name] != nil { clear(&message) }
                fields[name] = nil
                return
            case 1:
                held.hold(message[keyPath: path], before)
                return
            case 2, 3:
                let (value, model) = Content.makeOrPick(&choices, held)
                message[keyPath: path] = value
                after = model
            case 4:
                // Copies the field while it is lent.
                inPlace(&message) { content in
                    held.hold(content, before)
                    content.change(&after, &choices, held)
                }
            default:
                inPlace(&message) { $0.change(&after, &choices, held) }
            }
            fields[name] = isPresent == nil && after == absent ? nil : after
        }

        return Field(name: name, oneof: oneof, read: read, change: change, merge: Content.merge)
    }
}
