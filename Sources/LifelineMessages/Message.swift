public import CLifelineMessages

/// A protobuf message: a value that wraps the C struct that protobuf-c generated for it.
///
/// `protoc-gen-lifeline` generates the conforming types. Copies are cheap: they share memory until one of them is
/// changed, and the change first copies the message that it is made to. Everything that was decoded together is in one
/// block of memory. The block is freed with the last value that refers to any part of it.
///
/// Two messages are equal if their encodings are: if the same fields are present with the same values, including
/// unknown fields. Numbers are compared by their bits and text by its bytes, unlike Swift's `Double` and `String`. So a
/// NaN equals itself, `-0.0` differs from `0.0`, and an "é" from an "e" with a combining accent.
///
/// So every message equals its copies, as sets and dictionaries need. It also makes no difference whether a field is
/// known to the program, or is an extension or an unknown field, which are stored as bytes. Repeated fields, maps and
/// dynamic messages are compared in the same way; numbers, strings and cases of oneofs that are read from a message are
/// Swift's own, and compared by Swift's rules.
public protocol Message: DelimitedMessage, FieldElement, CustomDebugStringConvertible
where _CValue == UnsafeMutablePointer<_Fields>? {
    /// The struct from protoc-gen-c.
    associatedtype _Fields

    /// A message with no field set. It takes no memory until a field is set.
    init()

    // For generated code.
    static var _table: UnsafePointer<_MessageTable> { get }
    var _message: _MessageReference<_Fields> { get set }
    init(_message: _MessageReference<_Fields>)
}

extension Message {
    /// The full name of the message type, such as `google.protobuf.Timestamp`.
    public static var protoMessageName: String { String(cString: _table.pointee.full_name) }

    /// A new message. `populate` sets its fields.
    @inlinable public static func with<Failure: Error>(
        _ populate: (inout Self) throws(Failure) -> Void
    ) throws(Failure) -> Self {
        var message = Self()
        try populate(&message)
        return message
    }

    /// Whether every proto2 `required` field is set, in this message and in all below it.
    public var isInitialized: Bool {
        defer { extendLifetime(self) }
        return Self._table.missingRequiredField(in: _message.fields) == nil
    }
}

// MARK: - For generated code

extension Message {
    /// The struct that all messages without set fields share. It is never written to, because they have no storage.
    @inlinable static var _defaultFields: UnsafeMutablePointer<_Fields> {
        UnsafeMutableRawPointer(mutating: _table.pointee.default_instance).assumingMemoryBound(to: _Fields.self)
    }

    /// The content of a new message, for `init()`. Each type declares `init()` itself: Swift would otherwise prefer an
    /// initializer of an extension whose parameters all have defaults.
    @inlinable public static var _emptyMessage: _MessageReference<_Fields> {
        _MessageReference(storage: nil, fields: _defaultFields)
    }

    /// A submessage of `parent`, or the default if there is none.
    @inlinable public init(
        _reading fields: UnsafeMutablePointer<_Fields>?,
        in parent: _UntypedReference
    ) {
        if let fields {
            self.init(_message: _MessageReference(storage: parent.storage, fields: fields))
        } else {
            self.init()
        }
    }
}

extension Message {
    @inlinable public static func == (left: Self, right: Self) -> Bool {
        defer { extendLifetime(right) }
        return left._message.untyped.isEqual(to: right._message.untyped.fields, as: _table)
    }

    public func hash(into hasher: inout Hasher) {
        defer { extendLifetime(self) }
        MessageEncoding().hash(_message.fields, as: Self._table, into: &hasher)
    }
}
