internal import BenchmarkReport

/// Times every case of every contender on every workload.
func measureTime(_ harness: Harness) throws -> Results {
    struct Name {
        let `case`: Case
        let workload: Workload
        let contender: String
    }
    var entries: [Harness.Entry<Name>] = []
    for workload in try Workload.all() {
        let contenders = try Contender.all(on: workload)
        try checkAgreement(of: contenders, on: workload)
        for measured in Case.allCases {
            // Contenders of one case are adjacent, so that they have their turns at about the same time.
            for contender in contenders {
                guard let pass = contender.passes[measured] else { continue }
                let name = Name(case: measured, workload: workload, contender: contender.name)
                entries.append(Harness.Entry(name: name, pass: pass))
            }
        }
    }

    let medians = try harness.medians(of: entries)
    var results = Results()
    for measured in Case.allCases {
        for workload in try Workload.all() {
            let values = medians.filter { $0.name.case == measured && $0.name.workload.name == workload.name }
                .map { (contender: $0.name.contender, value: $0.nanoseconds / Double(workload.encoded.count)) }
            results.add(values, case: measured.rawValue, workload: workload.name, unit: "ns/message")
        }
    }
    return results
}

/// Measures the memory of parsed messages, and the number of allocations for parsing.
func measureMemory() throws -> Results {
    let meter = try MemoryMeter()
    let workloads = try Workload.all().map { (workload: $0, contenders: try Contender.all(on: $0)) }
    var results = Results()
    for (workload, contenders) in workloads {
        let heap = try contenders.compactMap { contender in
            try contender.memory.map { memory in
                // The first messages of a type have a one-time memory cost.
                try memory.keep()
                memory.release()
                defer { memory.release() }
                let bytes = Double(try meter.heapBytes(memory.keep)) / Double(workload.encoded.count)
                return (contender: contender.name, value: bytes + Double(memory.handleSize))
            }
        }
        results.add(heap, case: "heap", workload: workload.name, unit: "bytes/message")
    }
    for (workload, contenders) in workloads {
        let allocations = try contenders.compactMap { contender in
            try contender.passes[.parse].map { pass in
                let count = try meter.allocations { _ = try pass() }
                return (contender: contender.name, value: Double(count) / Double(workload.encoded.count))
            }
        }
        results.add(allocations, case: "allocations", workload: workload.name, unit: "allocations/parse")
    }
    return results
}
