internal import ArgumentParser
internal import LifelineReflection

/// The format of messages in a file or a pipe that a connection's messages come from or go to.
enum MessageFormat: Equatable, ExpressibleByArgument {
    case text(TextForm)
    /// The encoded messages, each after its length as a varint.
    case delimited

    private static let delimitedName = "delimited"

    init?(argument: String) {
        if argument == Self.delimitedName {
            self = .delimited
        } else if let form = TextForm(rawValue: argument) {
            self = .text(form)
        } else {
            return nil
        }
    }

    static var allValueStrings: [String] { TextForm.allCases.map(\.rawValue) + [delimitedName] }

    /// Nil for delimited messages, which are not text.
    var textForm: TextForm? { if case .text(let form) = self { form } else { nil } }
}

extension DescriptorPool? {
    /// Finds the type of `--type`; nil if there is neither a name nor a schema.
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
