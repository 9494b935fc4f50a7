/// Contenders do different work, so their measurements would not be comparable.
struct Disagreement: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
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
                    "\(contender.name) reads \(sum) in \(read.rawValue) of \(workload.name), not \(expected)"
                )
            }
        }
        for (index, encoded) in workload.encoded.enumerated() {
            if try !workload.content.areSameMessage(contender.serialized(index), encoded) {
                throw Disagreement(
                    "\(contender.name) does not serialize message \(index) of \(workload.name) as it was"
                )
            }
            if try !workload.content.areSameMessage(contender.built(index), encoded) {
                throw Disagreement("\(contender.name) builds another message than \(index) of \(workload.name)")
            }
            if let parsed = try contender.parsedJSON?(index), try !workload.content.areSameMessage(parsed, encoded) {
                throw Disagreement("\(contender.name) parses other JSON than that of \(index) of \(workload.name)")
            }
            if let json = try contender.printed?(index), try workload.content.encoded(json: json) != encoded {
                throw Disagreement("\(contender.name) prints other JSON than that of \(index) of \(workload.name)")
            }
        }
    }
}
