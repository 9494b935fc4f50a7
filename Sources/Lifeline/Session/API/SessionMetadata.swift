/// Names and values that the user sends beside the content of a message, like the headers of HTTP. Both
/// must be valid Unicode, as any `String` is.
public typealias SessionMetadata = [String: String]
