internal import LifelineCore
internal import LifelineProtos

extension Sample_Room_V1_NewsItem {
    /// Who said it, and what, as it is printed.
    var line: String { "\(from.escaped(limit: .max)): \(text.escaped(limit: .max))\n" }
}
