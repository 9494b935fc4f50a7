internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// A method of a service: its shape, and its names in Swift and on the wire.
struct ServiceMethod {
    /// The four kinds of calls that gRPC has, and two kinds of pushes.
    enum Shape: Equatable {
        /// `rpc Say(A) returns (B)`: a request, and its response.
        case unary
        /// `rpc Watch(A) returns (stream B)`: a request, and any number of messages as its response.
        case stream
        /// `rpc Record(stream A) returns (B)`: any number of messages, and one response to all of them.
        case clientStream
        /// `rpc Talk(stream A) returns (stream B)`: any number of messages in each direction.
        case bothWays
        /// `rpc Report(stream A) returns (google.protobuf.Empty)`: messages to the server, without a response.
        case clientPush
        /// `rpc News(google.protobuf.Empty) returns (stream B)`: messages that the server sends without a request.
        case serverPush
    }

    static let empty = "google.protobuf.Empty"

    let shape: Shape
    /// Whether the option `(lifeline.synchronous)` is true. `ServiceCheck` refuses it where no handler can be
    /// synchronous.
    let isSynchronous: Bool
    /// The name of the Swift method or property, in backticks if needed.
    let name: String
    /// The name in frames: `package.Service/Method`.
    let path: String
    /// A string literal with `path`, which is ASCII: protoc allows nothing else in names.
    var pathLiteral: String { "\"\(path)\"" }
    let descriptor: MethodDescriptor

    init(_ method: MethodDescriptor, name: String) {
        shape = Shape(
            input: method.inputType.fullName,
            isInputStreamed: method.clientStreaming,
            output: method.outputType.fullName,
            isOutputStreamed: method.serverStreaming,
            isAlwaysCall: method.options.isAlwaysCall
        )
        isSynchronous = method.options.isSynchronous
        self.name = name
        path = "\(method.service.fullName)/\(method.name)"
        descriptor = method
    }

    var isDeprecated: Bool { descriptor.options.deprecated }

    /// The message types that its Swift uses. An Empty that only marks a push is not among them.
    var usedMessages: [Descriptor] {
        switch shape {
        case .unary, .stream, .clientStream, .bothWays: [descriptor.inputType, descriptor.outputType]
        case .clientPush: [descriptor.inputType]
        case .serverPush: [descriptor.outputType]
        }
    }
}

extension ServiceMethod.Shape {
    /// - Parameters:
    ///   - input, output: full names, without a dot at the start.
    ///   - isAlwaysCall: whether the method is a call even where google.protobuf.Empty would make it a push.
    init(input: String, isInputStreamed: Bool, output: String, isOutputStreamed: Bool, isAlwaysCall: Bool) {
        let empty = isAlwaysCall ? nil : ServiceMethod.empty
        switch (isInputStreamed, isOutputStreamed) {
        case (false, false): self = .unary
        case (false, true): self = input == empty ? .serverPush : .stream
        case (true, false): self = output == empty ? .clientPush : .clientStream
        case (true, true): self = .bothWays
        }
    }
}

// MARK: - The options

extension Google_Protobuf_MethodOptions {
    /// An option of Protos/lifeline/options.proto.
    private typealias Option = MessageExtension<OptionalExtensionField<ProtobufBool>, Self>

    private static let call = Option(_protobuf_fieldNumber: 51270, fieldName: "lifeline.call")
    private static let synchronous = Option(_protobuf_fieldNumber: 51271, fieldName: "lifeline.synchronous")

    fileprivate var isAlwaysCall: Bool { isTrue(Self.call) }
    fileprivate var isSynchronous: Bool { isTrue(Self.synchronous) }

    /// Whether `option` is set to true. It is an unknown field, because protoc's request is read without extensions.
    private func isTrue(_ option: Option) -> Bool {
        let known = try? Self(serializedBytes: unknownFields.data, extensions: SimpleExtensionMap([option]))
        return known?.getExtensionValue(ext: option) ?? false
    }
}
