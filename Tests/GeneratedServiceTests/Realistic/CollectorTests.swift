import Lifeline
import TestServices
import Testing

/// A collector: messages that are nested deep, in unary calls and in a stream both ways.
@Suite(.timeLimit(.minutes(1))) struct CollectorTests {
    @Test func tracesAreExported() async throws {
        try await withSession(serving: TraceCollector()) { session in
            let collector = Test_Realistic_Collector_TraceCollectorClient(session)
            #expect(try await collector.export(traces(count: 3)).hasPartialSuccess == false)
            let partial = try await collector.export(traces(count: 12)).partialSuccess
            #expect(partial.rejectedCount == 2 && partial.errorMessage == "too many spans of demo")

            let statuses = try await collector.exportBatches { stream in
                for id in 1...3 as ClosedRange<Int64> {
                    try await stream.send(.with { ($0.id, $0.traces) = (id, traces(count: Int(id) * 5)) })
                }
            } receive: { statuses in
                try await statuses.collected()
            }
            #expect(statuses.map(\.id) == [1, 2, 3])
            #expect(statuses.map(\.status.code) == [.ok, .ok, .error])
        }
    }

    @Test func metricsAreExported() async throws {
        try await withSession(serving: MetricCollector()) { session in
            let collector = Test_Realistic_Collector_MetricCollectorClient(session)
            let request = Test_Realistic_Collector_ExportMetricsRequest.with {
                $0.metrics.append(.with { ($0.name, $0.counter.asInt) = ("calls", -1) })
                $0.metrics.append(
                    .with { ($0.name, $0.histogram.bucketCounts, $0.histogram.sum) = ("times", [1, 2, 3], 1.5) }
                )
            }
            let reply = try await collector.export(request)
            #expect(reply.partialSuccess.rejectedCount == 1)
            #expect(reply.partialSuccess.errorMessage == "calls: negative; times: 6 measured, 1.5 in all")
        }
    }
}

private func traces(count: Int) -> Test_Realistic_Collector_ExportTracesRequest {
    let spans = (0..<count).map { number in
        Test_Realistic_Collector_Span.with {
            ($0.traceID, $0.name, $0.kind) = ([UInt8](repeating: 7, count: 16), "span \(number)", .server)
            ($0.startTimeUnixNano, $0.endTimeUnixNano) = (1, 2)
            $0.events.append(.with { $0.name = "event" })
        }
    }
    let name = Test_Realistic_Collector_Attribute.with { attribute in
        attribute.key = "service"
        attribute.value.mapValue.attributes.append(.with { ($0.key, $0.value.stringValue) = ("name", "demo") })
    }
    return .with { request in
        request.resourceSpans.append(
            .with { spansOfResource in
                spansOfResource.resource.attributes.append(name)
                spansOfResource.scopeSpans.append(.with { ($0.scope.name, $0.spans) = ("test", .init(spans)) })
            }
        )
    }
}

/// Takes ten spans of a request.
private struct TraceCollector: Test_Realistic_Collector_TraceCollectorHandler {
    func export(
        _ request: Test_Realistic_Collector_ExportTracesRequest,
        context: SessionContext
    ) -> Test_Realistic_Collector_ExportTracesReply {
        let rejected = rejectedCount(of: request)
        return .with { reply in
            if rejected == 0 { return }
            let name = request.resourceSpans.first?.resource.attributes.first?.value.mapValue.attributes.first
            reply.partialSuccess.rejectedCount = Int64(rejected)
            reply.partialSuccess.errorMessage = "too many spans of \(name?.value.stringValue ?? "")"
        }
    }

    func exportBatches(
        _ requests: SessionMessages<Test_Realistic_Collector_Batch>,
        to stream: SessionStreamWriter<Test_Realistic_Collector_BatchStatus>,
        context: SessionContext
    ) async throws {
        for try await batch in requests {
            let isWhole = rejectedCount(of: batch.traces) == 0
            try await stream.send(.with { ($0.id, $0.status.code) = (batch.id, isWhole ? .ok : .error) })
        }
    }

    private func rejectedCount(of request: Test_Realistic_Collector_ExportTracesRequest) -> Int {
        max(request.resourceSpans.flatMap(\.scopeSpans).map(\.spans.count).reduce(0, +) - 10, 0)
    }
}

private struct MetricCollector: Test_Realistic_Collector_MetricCollectorHandler {
    func export(
        _ request: Test_Realistic_Collector_ExportMetricsRequest,
        context: SessionContext
    ) -> Test_Realistic_Collector_ExportMetricsReply {
        let remarks = request.metrics.compactMap { metric -> String? in
            switch metric.data {
            case .counter(let point): point.asInt < 0 ? "\(metric.name): negative" : nil
            case .histogram(let histogram):
                "\(metric.name): \(histogram.bucketCounts.reduce(0, +)) measured, \(histogram.sum) in all"
            case nil: nil
            }
        }
        return .with {
            $0.partialSuccess.rejectedCount = 1
            $0.partialSuccess.errorMessage = remarks.joined(separator: "; ")
        }
    }
}
