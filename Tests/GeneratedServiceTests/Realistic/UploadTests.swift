import Lifeline
import LifelineWellKnownTypes
import TestServices
import Testing

/// Files: streams of chunks in either direction, and calls with Empty on one side.
@Suite(.timeLimit(.minutes(1))) struct UploadTests {
    @Test func filesAreWrittenReadAndDeleted() async throws {
        try await withSession(serving: Files()) { session in
            let files = Test_Realistic_Upload_FilesClient(session)
            let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            // The second upload goes on where the first one ended.
            for part in [0..<120_000, 120_000..<200_000] {
                let reply = try await files.write { stream in
                    for offset in stride(from: part.lowerBound, to: part.upperBound, by: 20_000) {
                        try await stream.send(
                            .with {
                                if offset == part.lowerBound { $0.name = "a" }
                                $0.offset = Int64(offset)
                                $0.data = [UInt8](content[offset..<(offset + 20_000)])
                                $0.isLast = offset + 20_000 == content.count
                            }
                        )
                    }
                }
                #expect(reply.committedSize == Int64(part.upperBound))
                let query = try await files.query(.with { $0.name = "a" })
                #expect(query.committedSize == reply.committedSize)
                #expect(query.isComplete == (part.upperBound == content.count))
            }

            let chunks = try await files.read(.with { ($0.name, $0.offset) = ("a", 1_000) }).collected()
            #expect(chunks.flatMap(\.data) == [UInt8](content[1_000...]))
            #expect(try await files.list(.init()).collected().map(\.size) == [200_000])
            _ = try await files.deleteAll { stream in try await stream.send(.with { $0.name = "a" }) }
            #expect(try await files.list(.init()).collected().isEmpty)
        }
    }
}

private actor Files: Test_Realistic_Upload_FilesHandler {
    private struct File {
        var data: [UInt8] = []
        var isComplete = false
    }

    private var files: [String: File] = [:]

    func read(
        _ request: Test_Realistic_Upload_ReadRequest,
        to stream: SessionStreamWriter<Test_Realistic_Upload_ReadReply>,
        context: SessionContext
    ) async throws {
        guard let file = files[request.name] else { throw SessionStatus(.notFound) }
        for offset in stride(from: Int(request.offset), to: file.data.count, by: 30_000) {
            try await stream.send(.with { $0.data = [UInt8](file.data[offset...].prefix(30_000)) })
        }
    }

    func write(
        _ requests: SessionMessages<Test_Realistic_Upload_WriteRequest>,
        context: SessionContext
    ) async throws -> Test_Realistic_Upload_WriteReply {
        var name = ""
        for try await request in requests {
            if !request.name.isEmpty { name = request.name }
            guard request.offset == Int64(files[name]?.data.count ?? 0) else { throw SessionStatus(.outOfRange) }
            files[name, default: File()].data += request.data
            files[name]?.isComplete = request.isLast
        }
        let size = files[name]?.data.count ?? 0
        return .with { $0.committedSize = Int64(size) }
    }

    func query(
        _ request: Test_Realistic_Upload_QueryRequest,
        context: SessionContext
    ) async throws -> Test_Realistic_Upload_QueryReply {
        guard let file = files[request.name] else { throw SessionStatus(.notFound) }
        return .with { ($0.committedSize, $0.isComplete) = (Int64(file.data.count), file.isComplete) }
    }

    func list(
        _ request: Google_Protobuf_Empty,
        to stream: SessionStreamWriter<Test_Realistic_Upload_ListReply>,
        context: SessionContext
    ) async throws {
        for (name, file) in files where file.isComplete {
            try await stream.send(.with { ($0.name, $0.size) = (name, Int64(file.data.count)) })
        }
    }

    func deleteAll(
        _ requests: SessionMessages<Test_Realistic_Upload_DeleteRequest>,
        context: SessionContext
    ) async throws -> Google_Protobuf_Empty {
        for try await request in requests { files[request.name] = nil }
        return .init()
    }
}
