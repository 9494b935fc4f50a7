/// Returns the number of elements in the largest collection within a value, private properties included. Memory depends
/// on it.
package func keptPlaceCount(in value: Any) -> Int {
    let mirror = Mirror(reflecting: value)
    switch mirror.displayStyle {
    case .collection, .dictionary, .set: return mirror.children.count
    default: return mirror.children.map { keptPlaceCount(in: $0.value) }.max() ?? 0
    }
}
