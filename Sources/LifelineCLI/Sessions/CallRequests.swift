internal import LifelineMessages
internal import LifelineReflection

/// The requests of a call.
struct CallRequests {
    private let method: Schema.Method
    private let schema: Schema
    private let text: RequestText

    /// - Parameter text: nil for standard input where the method takes a stream, and for a request without fields where
    ///   it does not.
    init(_ method: Schema.Method, in schema: Schema, from text: RequestText?) {
        self.method = method
        self.schema = schema
        let takesStream = method.kind == .clientStream || method.kind == .bothWays
        self.text = text ?? (takesStream ? .standardInput : .literal("{}"))
    }

    /// Starts with the first request.
    ///
    /// - Throws: `CommandFailure`.
    func reader() throws(CommandFailure) -> RequestReader {
        guard let type = method.request else {
            throw CommandFailure(
                status: .usage,
                message: "The server does not tell what \(method.name) takes. Give its .proto file with --proto."
            )
        }
        let limit = MessageLimit.default
        let decoder = MessageTextDecoder(type, in: schema.pool, from: .json, ignoresUnknown: false, limit: limit)
        return try RequestReader(text, decoder: decoder, limit: limit)
    }

    /// Reads all requests. There is at least one.
    func all() async throws -> [RawMessage] {
        var reader = try reader()
        var requests: [RawMessage] = []
        while let request = try await reader.next() { requests.append(request) }
        guard !requests.isEmpty else {
            throw CommandFailure(status: .usage, message: "There is no request: --data is empty.")
        }
        return requests
    }

    /// A request as it was given, for errors.
    func json(_ request: RawMessage) -> String {
        let bytes = request.bytes
        guard let type = method.request, let message = try? DynamicMessage(type, serializedBytes: bytes) else {
            return ""
        }
        let options = JSONEncodingOptions(types: MessageRegistry(schema.pool))
        return (try? message.jsonString(options: options)) ?? ""
    }
}
