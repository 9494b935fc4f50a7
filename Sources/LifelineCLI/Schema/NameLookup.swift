/// Finds the item with a full name, or else the only item whose full name ends with it. A slash in names is equal to a
/// dot.
///
/// - Parameters:
///   - noun: the kind of the item, for errors.
///   - all: the items to search. Well-known types, which are seldom meant, are not suggested.
/// - Throws: `CommandFailure`, which names similar ones.
func find<Named>(
    _ noun: String,
    named name: String,
    among all: [Named],
    by fullName: (Named) -> String
) throws(CommandFailure) -> Named {
    let dotted = (name.hasPrefix(".") ? String(name.dropFirst()) : name).replacing("/", with: ".")
    var matches = all.filter { fullName($0).replacing("/", with: ".") == dotted }
    if matches.isEmpty { matches = all.filter { fullName($0).replacing("/", with: ".").hasSuffix(".\(dotted)") } }
    if matches.count == 1 { return matches[0] }
    let text: String
    if matches.isEmpty {
        let own = all.map(fullName).filter { !$0.hasPrefix("google.protobuf.") }
        let last = dotted.split(separator: ".").last.map { $0.lowercased() } ?? ""
        let similar = own.filter { $0.lowercased().contains(last) }
        text = "There is no \(noun) \(name). There is \(list(similar.isEmpty ? own : similar))."
    } else {
        text = "\(name) may be \(list(matches.map(fullName))). Give the full name."
    }
    throw CommandFailure(status: .usage, message: text)
}

/// Returns names in words: the first ten, and the number of further ones.
///
/// - Parameter conjunction: the word before the last one.
func list(_ names: [String], _ conjunction: String = "and") -> String {
    if names.isEmpty { return "none" }
    let shown = names.prefix(10)
    if names.count > shown.count { return shown.joined(separator: ", ") + " and \(names.count - shown.count) more" }
    if shown.count == 1 { return shown[0] }
    return shown.dropLast().joined(separator: ", ") + " \(conjunction) " + shown[shown.count - 1]
}
