internal import LifelineMessages

extension MessageError {
    /// The error, with advice for the user of the command in place of that for a program.
    var words: String {
        let programAdvice = [" DecodingOptions.", "JSONDecodingOptions.", "TextFormatDecodingOptions."]
        // "1.5" has no space after the point.
        let sentences = message.split(separator: ". ", omittingEmptySubsequences: false).map(String.init)
        let kept = sentences.filter { sentence in !programAdvice.contains { " \(sentence)".contains($0) } }.joined(
            separator: ". "
        )
        let text = kept.hasSuffix(".") ? kept : "\(kept)."
        return switch code {
        case .unknownField, .unknownEnumValue: "\(text) --ignore-unknown passes over such fields and values."
        case .memoryLimitExceeded: "It takes more memory than --limit allows."
        default: text
        }
    }
}
