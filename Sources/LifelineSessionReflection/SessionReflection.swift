public import Lifeline
internal import LifelineDescriptorTypes
internal import LifelineMessages
internal import LifelineReflection

/// A service that describes the methods of a server, so that tools such as `lifeline call` need no .proto files.
///
///     let services: [any SessionService] = [room, lobby]
///     try await withSessionServer(listeningOn: endpoint, services: services + [SessionReflection(of: services)]) { … }
///
/// Every client that the server lets in can read the names and types of all methods.
public struct SessionReflection: Lifeline_Reflection_V1_ReflectionHandler {
    private static let partLength = 64 << 10

    private var parts: [Lifeline_Reflection_V1_Description] = []

    /// Describes the methods of `services`, and its own.
    ///
    /// Only generated types of messages are described: the type of a `RawMessage` is unknown.
    public init(of services: [any SessionService]) {
        let methods = services.flatMap(\.methods) + self.methods
        let types = methods.flatMap { [$0.requestType, $0.replyType] }.compactMap { $0 as? any Message.Type }
        parts = [.with { $0.methods = .init(methods.map(\.reflected)) }]
        var length = 0
        for file in DescriptorPool(types).files {
            let bytes = file.completeInItself
            length += bytes.count
            if length > Self.partLength {
                parts.append(Lifeline_Reflection_V1_Description())
                length = bytes.count
            }
            parts[parts.count - 1].files.append(bytes)
        }
    }

    public func describe(
        _ request: Lifeline_Reflection_V1_DescribeRequest,
        to stream: SessionStreamWriter<Lifeline_Reflection_V1_Description>,
        context: SessionContext
    ) async throws {
        for part in parts { try await stream.send(part) }
    }
}

extension SessionMethod {
    fileprivate var reflected: Lifeline_Reflection_V1_Method {
        .with {
            $0.name = name
            $0.kind =
                switch kind {
                case .unary: .unary
                case .stream: .serverStream
                case .clientStream: .clientStream
                case .bothWays: .bothWays
                case .push: .push
                }
            $0.requestType = (requestType as? any Message.Type)?.protoMessageName ?? ""
            $0.replyType = (replyType as? any Message.Type)?.protoMessageName ?? ""
        }
    }
}
