/// An endless story, generated one token after another: a Markov chain over a short text.
struct Story: Sequence, IteratorProtocol {
    private static let source = """
        The keeper of the lighthouse wrote down every ship. The night was long, and the sea was dark. A storm came \
        from the north, and the lamp went out. The keeper climbed the stairs, lit the lamp again, and wrote down the \
        hour.

        At the harbour, a girl waited for a ship. The ship was late, and the wind was cold. She counted the waves, and \
        lost none of them. When the lamp went out, she waited. When the lamp came back, she counted on from the last \
        wave.

        The captain of the ship saw the lamp, and then the captain saw nothing. The captain did not turn back. A ship \
        knows where it was, and goes on from there. In the morning, the ship came into the harbour, and the girl had \
        counted every wave.

        The keeper wrote down the last ship, and slept. The sea was calm. The wind told the story again, from the \
        north to the harbour, and lost no word of it.
        """

    /// For each token, the tokens that follow it in the text, as often as they do.
    private static let followers: [Substring: [Substring]] = {
        let tokens = source.matches(of: /\n\n| ?\w+|[.,]/).map(\.output)
        // The first token follows the last one, so that every token has a follower.
        let pairs = zip(tokens, tokens.dropFirst() + tokens.prefix(1))
        return Dictionary(grouping: pairs, by: \.0).mapValues { $0.map(\.1) }
    }()

    private var random: SeededGenerator
    private var last: Substring = "\n\n"

    init(seed: UInt64) {
        random = SeededGenerator(state: seed)
    }

    mutating func next() -> String? {
        guard let token = Story.followers[last]?.randomElement(using: &random) else { return nil }
        last = token
        return String(token)
    }
}

/// Random numbers from a seed: SplitMix64.
private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
