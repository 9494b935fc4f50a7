/// What goes with a message besides its content: names and values of the user's choice, as the headers of HTTP. Both
/// must be valid Unicode, as any `String` is.
public typealias SessionMetadata = [String: String]
