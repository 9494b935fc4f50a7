internal import Lifeline
internal import LifelineCore
internal import LifelineDescriptorTypes
internal import LifelineMessages
internal import LifelineReflection
internal import LifelineSessionReflection

extension Schema {
    /// Makes the schema from a server's description of its methods.
    ///
    /// - Throws: `CommandFailure` when the server does not describe them; `SessionError`.
    init(describedBy client: SessionClient) async throws {
        let reflection = Lifeline_Reflection_V1_ReflectionClient(client)
        var methods: [Lifeline_Reflection_V1_Method] = []
        var set = Google_Protobuf_FileDescriptorSet()
        var byteCount = 0
        do {
            for try await part in reflection.describe(.init(), timeout: .seconds(30)) {
                byteCount += part.files.reduce(0) { $0 + $1.count }
                byteCount += part.methods.reduce(0) { $0 + $1.memoryCount }
                guard byteCount <= DescriptorLimits().byteCount else {
                    throw CommandFailure(
                        status: .badData,
                        message:
                            "The server describes its methods with more than \(DescriptorLimits().byteCount) bytes."
                    )
                }
                for method in part.methods where !method.hasMethodName {
                    throw CommandFailure(
                        status: .badData,
                        message: "The server describes a method whose name is not of the form package.Service/Method: "
                            + method.name.escaped(limit: 100)
                    )
                }
                methods += part.methods
                for file in part.files {
                    set.file.append(try Google_Protobuf_FileDescriptorProto(serializedBytes: file))
                }
            }
        } catch let error as SessionError where error.status?.code == .unimplemented {
            throw CommandFailure(
                status: .unavailable,
                message: "The server does not describe its methods. Give the .proto file of its service with --proto."
            )
        }
        var pool = DescriptorPool()
        do throws(DescriptorError) {
            try pool.add(set)
        } catch {
            throw CommandFailure(status: .badData, message: "The server describes types wrongly. \(error.message)")
        }
        self.init(pool, described: methods)
    }

    /// - Parameter described: the methods that clients can call. Methods that the server pushes are only declared.
    private init(_ pool: DescriptorPool, described: [Lifeline_Reflection_V1_Method]) {
        let called = described.compactMap { Method($0, in: pool) }
        let names = Set(called.map(\.name))
        let services = Set(called.map { $0.name.prefix { $0 != "/" } })
        let pushed = Schema(pool).methods.filter { method in
            method.kind == .serverPush && !names.contains(method.name)
                && services.contains(method.name.prefix { $0 != "/" })
        }
        self.init(pool, methods: called + pushed)
    }
}

extension Lifeline_Reflection_V1_Method {
    /// Whether the name is a valid method name, so that lines for people can be made from it.
    fileprivate var hasMethodName: Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2 else { return false }
        let service = parts[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return (service + [parts[1]]).allSatisfy(isIdentifier)
    }

    /// The approximate bytes that it takes, here and in a `Schema`.
    fileprivate var memoryCount: Int {
        name.utf8.count + requestType.utf8.count + replyType.utf8.count + 100
    }
}

extension Schema.Method {
    /// Makes a method; nil for a kind that this program does not know.
    fileprivate init?(_ method: Lifeline_Reflection_V1_Method, in pool: DescriptorPool) {
        let kind: Kind
        switch method.kind {
        case .unary: kind = .unary
        case .serverStream: kind = .serverStream
        case .clientStream: kind = .clientStream
        case .bothWays: kind = .bothWays
        case .push: kind = .push
        default: return nil
        }
        self.init(
            name: method.name,
            kind: kind,
            request: pool.message(named: method.requestType),
            reply: pool.message(named: method.replyType)
        )
    }
}

private func isIdentifier(_ text: Substring.UTF8View) -> Bool {
    func isLetter(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
    guard let first = text.first, isLetter(first) else { return false }
    return text.allSatisfy { isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
}
