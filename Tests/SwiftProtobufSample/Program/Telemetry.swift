import Foundation
import SwiftProtobuf

typealias Batch = Example_Telemetry_V1_Batch
typealias Sample = Example_Telemetry_V1_Sample
typealias Event = Example_Telemetry_V1_Event
typealias Unit = Example_Telemetry_V1_Unit
typealias Severity = Example_Telemetry_V1_Severity
typealias Histogram = Example_Telemetry_V1_Histogram
typealias CrashReport = Example_Telemetry_V1_CrashReport
typealias Summary = Example_Telemetry_V1_Summary

/// Measures, in a way that every run repeats.
struct Recorder {
    private var clock = Clock()
    private var sequence: UInt64 = 0
    private let resource = Example_Telemetry_V1_Resource.with {
        $0.serviceName = "greenhouse"
        $0.instanceID = Data([0xde, 0xad, 0xbe, 0xef])
        $0.attributes = ["region": "eu-central", "zone": "b"]
    }

    mutating func record() throws -> Batch {
        sequence += 1
        var batch = Batch.with {
            $0.sequence = sequence
            $0.resource = resource
            $0.interval = Google_Protobuf_Duration(seconds: 15, nanos: 500_000_000)
        }
        for index in 0..<4 { batch.samples.append(sample(index)) }
        batch.samples[0].note = "calibrated"
        batch.samples[1].labels["unit"] = "\(batch.samples[1].unit)"
        if sequence.isMultiple(of: 2) {
            batch.events.append(try crash())
            batch.compression = .zstd
        }
        batch.events.append(
            .with {
                $0.time = clock.advance(by: 0.25)
                $0.severity = sequence == 3 ? Severity(rawValue: 35)! : .info
                $0.text = "batch \(sequence) closed"
                $0.details = ["samples": 4, "closed": true, "ratio": 0.5]
                $0.details.fields["tags"] = Google_Protobuf_Value(listValue: ["nightly", nil])
            }
        )
        batch.signatures = try [batch.samples[0].serializedData(), batch.events[0].serializedData().prefix(8)]
        return batch
    }

    private mutating func sample(_ index: Int) -> Sample {
        .with {
            $0.metric = ["temperature", "pressure", "requests", "latency"][index]
            $0.unit = Unit(rawValue: index + 1) ?? .unspecified
            $0.time = clock.advance(by: 1.5)
            $0.traceID = Data("trace-\(sequence)".utf8) + Data(repeating: UInt8(index), count: 4)
            switch index {
            case 0: $0.gauge = 20.25 + Double(sequence)
            case 1: $0.value = .gauge(101_325)
            case 2: $0.counter = -3 * Int64(sequence)
            default:
                $0.histogram.bounds = [0.5, 1, 2.5]
                $0.histogram.counts = [1, sequence, 3, 0]
            }
        }
    }

    private mutating func crash() throws -> Event {
        let report = CrashReport.with {
            $0.signal = "SIGSEGV"
            $0.addresses = [0x7fff_0000, 0x7fff_1000, .max]
            $0.core = Data((0..<32).map { UInt8($0 &* 7) })
        }
        return try .with {
            $0.time = clock.advance(by: 0.125)
            $0.severity = .error
            $0.text = "worker crashed"
            $0.payload = try Google_Protobuf_Any(message: report)
        }
    }
}

extension Event {
    /// Whether the event is at least as severe as `severity`; numbers that the enum does not have count as well.
    func isAtLeast(_ severity: Severity) -> Bool { self.severity.rawValue >= severity.rawValue }
}

/// Batches in a file, each behind its length.
struct BatchFile {
    let url: URL

    func write(_ batches: [Batch]) throws {
        let stream = OutputStream(url: url, append: false)!
        stream.open()
        defer { stream.close() }
        for batch in batches { try BinaryDelimited.serialize(message: batch, to: stream) }
    }

    func read() throws -> [Batch] {
        let stream = InputStream(url: url)!
        stream.open()
        defer { stream.close() }
        var batches: [Batch] = []
        while stream.hasBytesAvailable {
            do {
                batches.append(try BinaryDelimited.parse(messageType: Batch.self, from: stream))
            } catch let error as SwiftProtobufError where error.code == .binaryStreamDecodingError {
                break  // The end of the file.
            }
        }
        return batches
    }
}

extension Sample {
    /// The value on a line.
    var valueText: String {
        switch value {
        case .gauge(let number): return String(format: "%.2f", number)
        case .counter(let count): return "\(count)"
        case .histogram(let histogram): return "\(histogram.counts.reduce(0, +)) in \(histogram.bounds.count + 1)"
        case nil: return "-"
        }
    }
}

extension Summary {
    init(_ batches: [Batch]) {
        self.init()
        for batch in batches {
            for sample in batch.samples where sample.hasTime {
                samplesByMetric[sample.metric, default: 0] += 1
                if !hasLatest || sample.time.date > latest.date { latest = sample.time }
            }
            for event in batch.events { eventsBySeverity[Int32(event.severity.rawValue), default: 0] += 1 }
        }
        self.batches = UInt32(batches.count)
    }
}

func runTelemetry(in folder: URL, _ report: inout Report) throws {
    report.begin("Telemetry")
    report.add("Units", values(of: Unit.self))
    report.add("Severities", values(of: Severity.self))
    report.add("Compressions", values(of: Batch.Compression.self))
    var recorder = Recorder()
    let batches = try (0..<4).map { _ in try recorder.record() }

    let file = BatchFile(url: folder.appendingPathComponent("batches.bin"))
    try file.write(batches)
    let exported = try Data(contentsOf: file.url)
    report.add("File", "\(exported.count) bytes, \(try file.read().count) batches")
    report.check(
        try file.read().map(canonicalData) == batches.map(canonicalData),
        "the file has what was written"
    )
    try exported.dropLast(5).write(to: file.url)
    do {
        _ = try file.read()
        report.check(false, "a file that ends in a message is refused")
    } catch {
        report.add("Cut file", reason(for: error))
    }

    for batch in batches {
        let note = batch.samples[0].hasNote ? batch.samples[0].note : "-"
        let compression = batch.hasCompression ? "\(batch.compression)/\(batch.compression.rawValue)" : "-"
        report.add("Batch \(batch.sequence)", "\(note) \(compression) \(try canonicalData(of: batch).digest)")
        let lines = batch.samples.map { "\($0.metric) \($0.valueText) \($0.unit)" }
        report.add("  samples", lines.joined(separator: "; "))
        report.add("  severities", batch.events.map { "\($0.severity) \($0.severity.rawValue)" })
        report.add("  bytes", try batch.samples.map { try $0.serializedData().count })
        report.add("  signatures", batch.signatures.map { "\($0.count) \($0.digest)" })
        report.check(try survivesAllFormats(batch.resource), "a resource is the same in all formats")
        report.check(batch.hasResource && batch.hasInterval, "a batch has a resource and an interval")
    }

    let alerts = batches.flatMap(\.events).filter { $0.isAtLeast(.warning) }
    report.add("Alerts", alerts.sorted { $0.severity.rawValue < $1.severity.rawValue }.map(\.text))
    let levels = [30, 31].map { Severity(rawValue: $0) ?? .unspecified }
    report.add("Levels", levels.map { "\($0) \(Severity.allCases.contains($0))" })
    try reportPayloads(of: batches, &report)

    let summary = Summary(batches)
    report.add("Metrics", summary.samplesByMetric.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })
    report.add("Severities", summary.eventsBySeverity.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })
    report.add("Latest", summary.latest.date.timeIntervalSince1970)
    report.add("Time series", Set(batches.flatMap(\.samples).map(\.metric)).sorted())
    let samples: Set<Sample> = Set(batches.flatMap(\.samples) + batches[0].samples)
    report.check(samples.count == 16, "equal samples are one in a set")

    // A relay passes on what it does not know.
    var relayed = try Google_Protobuf_Empty(serializedData: batches[0].samples[3].serializedData())
    report.check(!relayed.unknownFields.data.isEmpty, "unknown fields are kept")
    report.add("Unknown fields", relayed.unknownFields.data.digest)
    report.check(
        try Sample(serializedData: relayed.serializedData()) == batches[0].samples[3],
        "unknown fields are written again"
    )
    relayed.unknownFields = UnknownStorage()
    report.check(try relayed.serializedData().isEmpty, "unknown fields can be dropped")
}

private func reportPayloads(of batches: [Batch], _ report: inout Report) throws {
    for event in batches.flatMap(\.events) where event.hasPayload {
        let crash = try CrashReport(unpackingAny: event.payload)
        report.add("Crash", "\(crash.signal) \(crash.addresses.map { String($0, radix: 16) }) \(crash.core.digest)")
        report.check(event.payload.isA(CrashReport.self), "the payload says what it holds")
        report.check(!event.payload.isA(Sample.self), "the payload is nothing else")
        do {
            _ = try Sample(unpackingAny: event.payload)
            report.check(false, "a payload of another type is refused")
        } catch {
            report.add("Payload", "\(event.payload.typeURL): \(reason(for: error))")
        }
    }
    var event = batches[0].events[0]
    report.check(!event.hasPayload, "an info has no payload")
    if case .listValue(let tags)? = event.details.fields["tags"]?.kind {
        report.add("Tags", tags.values.map { $0.stringValue.isEmpty ? "none" : $0.stringValue })
    }
    report.add("Closed", event.details["closed"]?.boolValue ?? false)
    for key in ["closed", "samples", "tags"] { event.details.fields[key] = nil }
    report.add("Event", try event.jsonString())
    event.details.fields["by"] = Google_Protobuf_Value(stringValue: "timer")
    report.check(try Event(jsonString: event.jsonString()) == event, "an event is the same in JSON")
    event.clearTime()
    event.clearDetails()
    report.check(!event.hasTime && !event.hasDetails, "cleared fields are absent")
    report.add("Event in text", event.textFormatString().replacingOccurrences(of: "\n", with: " "))
}
