extension Example_Telemetry_V1_Measurement {
    /// Whether a text can be the name of a gateway or a sensor: 1 to 64 letters, digits, points, dashes and underscores.
    public static func isName(_ text: String) -> Bool { text.wholeMatch(of: /[A-Za-z0-9._\-]{1,64}/) != nil }
}
