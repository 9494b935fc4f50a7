public import LifelineMessages

/// The extensions that messages may have: a `MessageRegistry`, such as the generated one for each `.proto` file with
/// extensions, or a `SimpleExtensionMap`.
public protocol ExtensionMap: Sendable {
    /// The extensions. For this library.
    var _registry: MessageRegistry { get }
}

extension MessageRegistry: ExtensionMap {
    public var _registry: MessageRegistry { self }
}

/// A set of extensions.
public struct SimpleExtensionMap: ExtensionMap, ExpressibleByArrayLiteral {
    public private(set) var _registry = MessageRegistry()

    /// Makes a map without extensions.
    public init() {}

    public init(arrayLiteral extensions: any MessageExtension.Type...) { insert(contentsOf: extensions) }

    /// Makes a map with the extensions of others.
    public init(_ others: any ExtensionMap...) {
        for other in others { _registry.add(other._registry) }
    }

    /// Adds an extension.
    public mutating func insert(_ extension: any MessageExtension.Type) { insert(contentsOf: [`extension`]) }

    /// Adds extensions.
    public mutating func insert(contentsOf extensions: [any MessageExtension.Type]) {
        _registry.add(MessageRegistry(extensions))
    }

    /// Adds the extensions of another map.
    public mutating func formUnion(_ other: some ExtensionMap) { _registry.add(other._registry) }

    /// Returns a map with the extensions of both.
    public func union(_ other: some ExtensionMap) -> SimpleExtensionMap { SimpleExtensionMap(self, other) }
}

extension SwiftProtobufMessage {
    /// The value of an extension; nil if it is absent.
    public func getExtensionValue<Extension: MessageExtension>(ext: Extension.Type) -> Extension._Value?
    where Extension._Extended == Self {
        hasExtension(ext) ? self[ext] : nil
    }

    /// Sets an extension.
    public mutating func setExtensionValue<Extension: MessageExtension>(ext: Extension.Type, value: Extension._Value)
    where Extension._Extended == Self {
        self[ext] = value
    }

    /// Whether an extension is set.
    public func hasExtensionValue<Extension: MessageExtension>(ext: Extension.Type) -> Bool
    where Extension._Extended == Self {
        hasExtension(ext)
    }

    /// Clears an extension.
    public mutating func clearExtensionValue<Extension: MessageExtension>(ext: Extension.Type)
    where Extension._Extended == Self {
        clearExtension(ext)
    }
}
