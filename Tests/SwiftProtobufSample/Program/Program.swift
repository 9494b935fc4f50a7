import Foundation
import SwiftProtobuf

@main
enum Program {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("sample-\(ProcessInfo.processInfo.processIdentifier)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        _ = Google_Protobuf_Any.register(messageType: CrashReport.self)

        var report = Report()
        try runTelemetry(in: folder, &report)
        try await runChat(&report)
        try runDevice(in: folder, &report)
        let isSound = report.failures.isEmpty
        print(report.finish())
        if !isSound { exit(1) }
    }
}
