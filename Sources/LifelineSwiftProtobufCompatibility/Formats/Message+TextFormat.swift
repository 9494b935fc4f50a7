internal import LifelineMessages

extension SwiftProtobufMessage {
    /// The message in text format.
    public func textFormatString(options: TextFormatEncodingOptions = TextFormatEncodingOptions()) -> String {
        textFormatString(options: options.options)
    }

    /// Reads a message from text format. Proto2 `required` fields may be absent.
    ///
    /// - Parameter extensions: Extensions that may be in the text.
    /// - Throws: `TextFormatDecodingError`.
    public init(
        textFormatString: String,
        options: TextFormatDecodingOptions = TextFormatDecodingOptions(),
        extensions: (any ExtensionMap)? = nil
    ) throws {
        do throws(MessageError) {
            try self.init(textFormatString: textFormatString, partial: true, options: options.options(extensions))
        } catch {
            throw Array(textFormatString.utf8).withUnsafeBytes(error.asTextFormatDecodingError)
        }
    }
}
