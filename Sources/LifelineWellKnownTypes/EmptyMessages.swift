public import LifelineMessages

// Declared for each type, because Swift prefers an initializer of the type to one of its protocol. Without these, `T()`
// would mean `T(seconds: 0, nanos: 0)` or an empty literal, or be ambiguous.

extension Google_Protobuf_Duration {
    /// A span of no time. It takes no memory until a field is set.
    @inlinable public init() { self.init(_message: Self._emptyMessage) }
}

extension Google_Protobuf_FieldMask {
    /// A mask without paths. It takes no memory until a field is set.
    @inlinable public init() { self.init(_message: Self._emptyMessage) }
}

extension Google_Protobuf_ListValue {
    /// An empty JSON array. It takes no memory until a field is set.
    @inlinable public init() { self.init(_message: Self._emptyMessage) }
}

extension Google_Protobuf_Struct {
    /// An empty JSON object. It takes no memory until a field is set.
    @inlinable public init() { self.init(_message: Self._emptyMessage) }
}

extension Google_Protobuf_Timestamp {
    /// The moment 1970-01-01T00:00:00Z. It takes no memory until a field is set.
    @inlinable public init() { self.init(_message: Self._emptyMessage) }
}

extension Google_Protobuf_Value {
    /// No value, which JSON cannot say. It takes no memory until a field is set.
    @inlinable public init() { self.init(_message: Self._emptyMessage) }
}
