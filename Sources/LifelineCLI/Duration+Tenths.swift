extension Duration {
    /// The seconds with at most one decimal: 1, 1.2.
    var inTenths: String {
        let text = decimal(self / .seconds(1), places: 1)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
