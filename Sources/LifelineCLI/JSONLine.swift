internal import FoundationEssentials

/// Returns a JSON object as a line, without the line's end. Its keys are sorted, so that lines can be compared.
func jsonLine(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return [UInt8](try encoder.encode(value))
}

/// Writes a JSON object as a line to standard error.
func writeErrorLine(json value: some Encodable) throws {
    writeErrorLine(String(decoding: try jsonLine(value), as: UTF8.self))
}
