internal import LifelineMessages
internal import LifelineReflection

/// Types of messages, and the methods that use them.
struct Schema {
    /// A method that a client calls, or whose pushes it receives.
    struct Method {
        enum Kind: String {
            case unary
            case serverStream = "server stream"
            case clientStream = "client stream"
            case bothWays = "both ways"
            case push
            /// A push from the server.
            case serverPush = "server push"
        }

        /// `package.Service/Method`.
        let name: String
        let kind: Kind
        /// The type that the client sends; nil for pushes of the server, and if the type is unknown.
        let request: MessageDescriptor?
        /// The type that the server sends; nil for pushes of the client, and if the type is unknown.
        let reply: MessageDescriptor?
    }

    let pool: DescriptorPool
    let methods: [Method]

    init(_ pool: DescriptorPool, methods: [Method]) {
        self.pool = pool
        self.methods = methods
    }

    /// The methods of all services that the files declare.
    init(_ pool: DescriptorPool) {
        let call = pool.extension(named: "lifeline.call")
        let methods = pool.files.flatMap(\.services).flatMap(\.methods)
        self.init(pool, methods: methods.map { Method($0, isCall: $0.hasOption(call)) })
    }

    /// Finds a method by its full name, with a slash or a dot before the last part, or by the end of that if only one
    /// method matches.
    ///
    /// - Throws: `CommandFailure`, which names other methods.
    func method(named name: String) throws(CommandFailure) -> Method {
        try find("method", named: name, among: methods, by: \.name)
    }
}

extension Schema.Method {
    /// - Parameter isCall: whether the option `(lifeline.call)` is set. Without it, `google.protobuf.Empty` on one side
    ///   turns a stream into pushes.
    fileprivate init(_ method: MethodDescriptor, isCall: Bool) {
        let kind: Kind =
            switch (method.isClientStreaming, method.isServerStreaming) {
            case (false, false): .unary
            case (true, true): .bothWays
            case (true, false): method.outputType?.isEmpty == true && !isCall ? .push : .clientStream
            case (false, true): method.inputType?.isEmpty == true && !isCall ? .serverPush : .serverStream
            }
        self.init(
            name: "\(method.service.fullName)/\(method.name)",
            kind: kind,
            request: kind == .serverPush ? nil : method.inputType,
            reply: kind == .push ? nil : method.outputType
        )
    }
}

extension MessageDescriptor {
    fileprivate var isEmpty: Bool { fullName == "google.protobuf.Empty" }
}

extension MethodDescriptor {
    fileprivate func hasOption(_ option: FieldDescriptor?) -> Bool {
        guard let option else { return false }
        // An option that cannot be read counts as absent.
        return (try? options.value(ofExtension: option))?.boolValue ?? false
    }
}
