internal import ArgumentParser
internal import LifelineReflection

/// How messages look in a file or a pipe that a connection's messages come from or go to.
enum MessageFormat: String, CaseIterable, ExpressibleByArgument {
    /// An object in a line of its own.
    case json
    /// protobuf's text format; a line with `---` follows each message.
    case text
    /// The encoded messages, each behind its length, a varint.
    case delimited

    /// Nil for delimited messages, which are no text.
    var textForm: TextForm? {
        switch self {
        case .json: .json
        case .text: .text
        case .delimited: nil
        }
    }
}

extension DescriptorPool? {
    /// Finds the type that `--type` names; nil if there is neither a name nor a schema.
    ///
    /// - Throws: `CommandFailure` when there is one without the other, or no such type.
    func messageType(named name: String?) throws(CommandFailure) -> (type: MessageDescriptor, pool: DescriptorPool)? {
        switch (name, self) {
        case (let name?, let pool?): return (try pool.messageType(named: name), pool)
        case (_?, nil): throw SchemaOptions.missing()
        case (nil, let pool?): throw pool.missingType()
        case (nil, nil): return nil
        }
    }
}
