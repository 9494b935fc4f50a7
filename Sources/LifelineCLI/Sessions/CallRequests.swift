internal import LifelineMessages
internal import LifelineReflection

/// The requests of a call.
struct CallRequests {
    private let method: Schema.Method
    private let schema: Schema
    private let text: RequestText
    private let ignoresUnknown: Bool
    private let limit: Int

    /// - Parameters:
    ///   - text: nil for standard input if the method takes a stream, and otherwise for a request without fields.
    ///   - ignoresUnknown: whether to ignore unknown fields and names of enum values.
    ///   - limit: the most bytes of an encoded request.
    init(_ method: Schema.Method, in schema: Schema, from text: RequestText?, ignoresUnknown: Bool, limit: Int) {
        self.limit = limit
        self.ignoresUnknown = ignoresUnknown
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
        if case .literal(let json) = text, json.allSatisfy(\.isWhitespace) {
            throw CommandFailure(status: .usage, message: "There is no request: --data is empty.")
        }
        let decoder = MessageTextDecoder(
            type,
            in: schema.pool,
            from: .json,
            ignoresUnknown: ignoresUnknown,
            limit: limit
        )
        return try RequestReader(text, decoder, limit: limit)
    }

    /// Reads all requests. There is at least one.
    func all() async throws -> [RawMessage] {
        var reader = try reader()
        var requests: [RawMessage] = []
        while let request = try await reader.next() { requests.append(request) }
        guard !requests.isEmpty else {
            throw CommandFailure(status: .usage, message: "There is no request in \(text.name).")
        }
        return requests
    }

    /// Returns a request as JSON, for errors.
    func json(_ request: RawMessage) -> String {
        let bytes = request.bytes
        guard let type = method.request, let message = try? DynamicMessage(type, serializedBytes: bytes) else {
            return ""
        }
        let options = JSONEncodingOptions(types: MessageRegistry(schema.pool))
        return (try? message.jsonString(options: options)) ?? ""
    }
}
