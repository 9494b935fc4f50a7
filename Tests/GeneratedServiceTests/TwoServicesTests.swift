import Lifeline
import LifelineProtos
import SampleServices
import TestServices
import Testing

/// A type with the methods of more than one generated service.
@Suite(.timeLimit(.minutes(1))) struct TwoServicesTests {
    @Test func oneTypeHandlesTwoServices() async throws {
        try await withSession(serving: RoomAndHall()) { session in
            #expect(try await Sample_Room_V1_RoomClient(session).echo(.with { $0.text = "x" }).text == "x")
            _ = try await Test_Services_Names_HallServiceClient(session).enter(.init())
        }
    }
}

/// It has methods of two services, so it has its own list.
private struct RoomAndHall: Sample_Room_V1_RoomHandler, Test_Services_Names_HallServiceHandler {
    var methods: [Lifeline.SessionMethod] { sampleRoomV1RoomMethods + testServicesNamesHallServiceMethods }

    func echo(_ request: Sample_Room_V1_EchoRequest, context: SessionContext) async throws -> Sample_Room_V1_EchoReply {
        .with { $0.text = request.text }
    }

    func watch(
        _ request: Sample_Room_V1_WatchRequest,
        to stream: SessionStreamWriter<Sample_Room_V1_Tick>,
        context: SessionContext
    ) async throws {}

    func say(_ request: Sample_Room_V1_SayRequest, context: SessionContext) async throws -> Sample_Room_V1_SayReply {
        .init()
    }

    func report(_ message: Sample_Room_V1_Status, context: SessionContext) async throws {}

    func sayAll(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        context: SessionContext
    ) async throws -> Sample_Room_V1_SayAllReply {
        .init()
    }

    func talk(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        to stream: SessionStreamWriter<Sample_Room_V1_NewsItem>,
        context: SessionContext
    ) async throws {}

    func enter(
        _ request: Test_Services_Names_Room,
        context: SessionContext
    ) async throws -> Test_Services_Names_HallClient {
        .init()
    }
}
