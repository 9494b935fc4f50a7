extension Range<Int> {
    /// The first index for which `isBehind` is true, or the end. All indices for which it is true come last.
    func partitioningIndex(where isBehind: (Int) -> Bool) -> Int {
        var range = self
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = isBehind(middle) ? range.lowerBound..<middle : (middle + 1)..<range.upperBound
        }
        return range.lowerBound
    }
}
