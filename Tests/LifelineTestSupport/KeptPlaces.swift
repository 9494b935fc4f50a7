/// Returns how many elements the largest collection in a value has, those of private properties included: what memory
/// follows.
package func keptPlaceCount(in value: Any) -> Int {
    let mirror = Mirror(reflecting: value)
    switch mirror.displayStyle {
    case .collection, .dictionary, .set: return mirror.children.count
    default: return mirror.children.map { keptPlaceCount(in: $0.value) }.max() ?? 0
    }
}
