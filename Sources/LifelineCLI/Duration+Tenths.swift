extension Duration {
    /// Seconds with one decimal where there is one: 1, 1.2.
    var inTenths: String {
        let text = decimal(self / .seconds(1), places: 1)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
