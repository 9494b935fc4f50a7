internal import LifelineMessages

extension MessageError {
    /// What happened, and what the user of the command can do, in place of what a program can.
    var words: String {
        let programAdvice = [" DecodingOptions.", "JSONDecodingOptions.", "TextFormatDecodingOptions."]
        // "1.5" has no space behind the point.
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
