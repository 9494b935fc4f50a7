extension Range<Int> {
    /// The first index for which `isBehind` holds, or the end: those for which it holds stand behind all others.
    func partitioningIndex(where isBehind: (Int) -> Bool) -> Int {
        var range = self
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = isBehind(middle) ? range.lowerBound..<middle : (middle + 1)..<range.upperBound
        }
        return range.lowerBound
    }
}
