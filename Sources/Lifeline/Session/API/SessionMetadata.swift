/// Names and values that the user sends along with the content of a message, like the headers of HTTP. Both must be
/// valid Unicode, as any `String` is.
///
/// Names that begin with `lifeline-` are reserved for Lifeline.
public typealias SessionMetadata = [String: String]

/// The entry of the metadata of a push to a group: the place of the push in the group, and the name of the group.
package enum GroupMetadata {
    /// The key.
    package static let key = "lifeline-group"

    /// The value.
    package static func value(group: String, place: String) -> String { "\(place) \(group)" }

    /// The parts of a value; nil if it is malformed.
    package static func parts(of value: String) -> (group: Substring, place: Substring)? {
        guard let space = value.utf8.firstIndex(of: UInt8(ascii: " ")) else { return nil }
        return (value[value.utf8.index(after: space)...], value[..<space])
    }
}
