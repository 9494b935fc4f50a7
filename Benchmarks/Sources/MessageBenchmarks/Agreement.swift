/// Contenders do not do the same work: what they would be measured on is not comparable.
struct Disagreement: Error, CustomStringConvertible {
    let description: String
}

/// Throws unless all contenders read the same, and serialize and build the same messages.
func checkAgreement(of contenders: [Contender], on workload: Workload) throws {
    for contender in contenders {
        for read in [Case.parseRead3, .parseReadAll] {
            guard let sum = try contender.passes[read]?(), let expected = try contenders[0].passes[read]?() else {
                continue
            }
            if sum != expected {
                throw Disagreement(
                    description: "\(contender.name) reads \(sum) in \(read.rawValue) of \(workload.name), not \(expected)"
                )
            }
        }
        for (index, encoded) in workload.encoded.enumerated() {
            for (what, bytes) in [
                ("serializes", try contender.serialized(index)), ("builds", try contender.built(index)),
            ] where try !workload.content.areSameMessage(bytes, encoded) {
                throw Disagreement(
                    description: "\(contender.name) \(what) something else than message \(index) of \(workload.name)"
                )
            }
        }
    }
}
