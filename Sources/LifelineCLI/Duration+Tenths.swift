extension Duration {
    /// Seconds with one decimal where there is one: 1, 1.2.
    var inTenths: String {
        let tenths = Int((self / .milliseconds(100)).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}
