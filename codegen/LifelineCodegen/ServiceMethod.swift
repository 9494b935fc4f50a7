internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// A method of a service: what it is, and how Swift and the wire name it.
struct ServiceMethod {
    /// What a method may be. Sessions have no other ones.
    enum Shape: Equatable {
        /// `rpc Say(A) returns (B)`: a request, and its response.
        case unary
        /// `rpc Watch(A) returns (stream B)`: a request that any number of messages answer.
        case stream
        /// `rpc Report(stream A) returns (google.protobuf.Empty)`: messages to the server that it does not answer.
        case clientPush
        /// `rpc News(google.protobuf.Empty) returns (stream B)`: messages that the server sends of its own accord.
        case serverPush
    }

    static let empty = "google.protobuf.Empty"

    let shape: Shape
    /// The name of the Swift method, or property: in backticks where it has to be.
    let name: String
    /// How frames name it: `package.Service/Method`.
    let path: String
    /// A string literal with `path`, which is ASCII: protoc lets nothing else into names.
    var pathLiteral: String { "\"\(path)\"" }
    let descriptor: MethodDescriptor

    /// Nil for a shape that `SchemaCheck` refuses.
    init?(_ method: MethodDescriptor, name: String) {
        guard
            let shape = Shape(
                input: method.inputType.fullName,
                isInputStreamed: method.clientStreaming,
                output: method.outputType.fullName,
                isOutputStreamed: method.serverStreaming
            )
        else { return nil }
        self.shape = shape
        self.name = name
        path = "\(method.service.fullName)/\(method.name)"
        descriptor = method
    }

    var isDeprecated: Bool { descriptor.options.deprecated }

    /// The messages that its Swift names. An Empty that only marks a push is none of them.
    var usedMessages: [Descriptor] {
        switch shape {
        case .unary, .stream: [descriptor.inputType, descriptor.outputType]
        case .clientPush: [descriptor.inputType]
        case .serverPush: [descriptor.outputType]
        }
    }
}

extension ServiceMethod.Shape {
    /// Nil where there is no such shape. Types are full names, without a dot in front.
    init?(input: String, isInputStreamed: Bool, output: String, isOutputStreamed: Bool) {
        switch (isInputStreamed, isOutputStreamed) {
        case (false, false): self = .unary
        case (false, true): self = input == ServiceMethod.empty ? .serverPush : .stream
        case (true, false) where output == ServiceMethod.empty: self = .clientPush
        case (true, _): return nil
        }
    }
}
