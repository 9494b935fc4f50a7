internal import LifelineMessages
internal import LifelineReflection

/// Reads the first half of `bytes` as a FileDescriptorSet, and the rest as a message of each type in it: in the binary
/// format, as JSON and as text. Errors are fine. Traps at a contradiction.
func run(_ bytes: [UInt8]) {
    // The first byte says how much of the rest is the set.
    guard let split = bytes.first else { return }
    let rest = bytes.dropFirst()
    let (set, input) = (rest.prefix(rest.count * Int(split) / 255), rest.dropFirst(rest.count * Int(split) / 255))
    var pool = DescriptorPool()
    guard (try? pool.add(serializedFileSet: set)) != nil else {
        check(pool.files.isEmpty)
        return
    }
    let types = MessageRegistry(pool)
    for file in pool.files {
        check(pool.file(named: file.name) == file)
        for type in file.messages { check(type, pool, types, Array(input)) }
    }
    // The same files once more change nothing.
    let count = pool.files.count
    check((try? pool.add(serializedFileSet: set)) != nil && pool.files.count == count)
}

private func check(_ type: MessageDescriptor, _ pool: DescriptorPool, _ types: MessageRegistry, _ input: [UInt8]) {
    check(pool.message(named: type.fullName) == type)
    for nested in type.messages { check(nested, pool, types, input) }
    let extensions = pool.extensions(of: type)
    for field in extensions { check(pool.extension(of: type, number: field.number) == field) }
    for field in type.fields {
        check(type.field(number: field.number) == field && type.field(named: field.name) == field)
    }
    for message in messages(type, types, input) {
        var copy = DynamicMessage(type)
        for field in type.fields + extensions {
            let value = message[field]
            // An entry of a map that is decoded alone may have a number that its closed enum does not declare.
            if message.has(field) { check((try? copy.set(field, to: value)) != nil || type.isMapEntry) }
        }
        // Text that is not UTF-8 is repaired when it is read.
        if message.unknownFields.isEmpty, copy == message { check(copy.hashValue == message.hashValue) }
        _ = try? message.jsonString(options: JSONEncodingOptions(types: types))
        _ = message.textFormatString(options: TextFormatEncodingOptions(types: types))
        guard let bytes = try? message.serializedBytes(partial: true),
            let again = try? DynamicMessage(type, serializedBytes: bytes, partial: true)
        else { continue }
        check(again == message)
        for field in type.fields + extensions { copy.clear(field) }
        check(copy == DynamicMessage(type))
    }
}

/// The messages that an input represents in any format.
private func messages(_ type: MessageDescriptor, _ types: MessageRegistry, _ input: [UInt8]) -> [DynamicMessage] {
    let json = JSONDecodingOptions(types: types)
    let (text, options) = (String(decoding: input, as: UTF8.self), TextFormatDecodingOptions(types: types))
    let made = [
        try? DynamicMessage(type, serializedBytes: input, partial: true),
        try? DynamicMessage(type, jsonUTF8Bytes: input, partial: true, options: json),
        try? DynamicMessage(type, textFormatString: text, partial: true, options: options),
    ]
    return made.compactMap(\.self)
}

private func check(_ condition: Bool, line: UInt = #line) {
    if !condition { fatalError("what line \(line) checks does not hold") }
}
