internal import Foundation
internal import LifelineCore

/// A story as a page to look at: one file, which needs no network.
struct StoryPage {
    private let played: StoryRunner.Played
    private let seed: UInt64
    private let name: String

    init(_ played: StoryRunner.Played, seed: UInt64, name: String) {
        (self.played, self.seed, self.name) = (played, seed, name)
    }

    /// Returns the path of the file; nil where it cannot be written.
    func write() -> String? { nil }
}
