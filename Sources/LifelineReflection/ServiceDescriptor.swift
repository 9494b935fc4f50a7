public import LifelineDescriptorTypes

/// Describes a service.
public struct ServiceDescriptor: Hashable, Sendable {
    let storage: DescriptorStorage
    let index: Int

    private var service: DescriptorStorage.Service { storage.services[index] }

    /// The name without the package.
    public var name: String { service.proto.name }
    /// The name with the package.
    public var fullName: String { service.fullName }
    /// The file that declares the service.
    public var file: FileDescriptor { FileDescriptor(storage: storage, index: service.file) }
    /// The options. `Message.value(ofExtension:)` reads custom ones.
    public var options: Google_Protobuf_ServiceOptions { service.proto.options }
    /// The comments beside the declaration, if the file has them.
    public var comments: DescriptorComments { file.comments(at: [6, Int32(service.position)]) }
    /// The methods, in the order of declaration.
    public var methods: [MethodDescriptor] {
        service.methods.map { MethodDescriptor(storage: storage, index: $0) }
    }

    /// The method with this name.
    public func method(named name: String) -> MethodDescriptor? { methods.first { $0.name == name } }
}

/// Describes a method of a service.
public struct MethodDescriptor: Hashable, Sendable {
    let storage: DescriptorStorage
    let index: Int

    private var method: DescriptorStorage.Method { storage.methods[index] }

    /// The name without the service.
    public var name: String { method.proto.name }
    /// The service that declares the method.
    public var service: ServiceDescriptor { ServiceDescriptor(storage: storage, index: method.service) }
    /// The type of requests; nil if it is not linked.
    public var inputType: MessageDescriptor? { method.input?.message(from: storage) }
    /// The type of responses; nil if it is not linked.
    public var outputType: MessageDescriptor? { method.output?.message(from: storage) }
    /// Whether the client sends many requests.
    public var isClientStreaming: Bool { method.proto.clientStreaming }
    /// Whether the server sends many responses.
    public var isServerStreaming: Bool { method.proto.serverStreaming }
    /// The options. `Message.value(ofExtension:)` reads custom ones.
    public var options: Google_Protobuf_MethodOptions { method.proto.options }
    /// The comments beside the declaration, if the file has them.
    public var comments: DescriptorComments {
        service.file.comments(at: [6, Int32(storage.services[method.service].position), 2, Int32(method.position)])
    }
}
