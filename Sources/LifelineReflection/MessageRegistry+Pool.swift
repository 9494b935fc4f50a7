public import LifelineMessages

extension MessageRegistry {
    /// A registry of the message types of a pool, for a `google.protobuf.Any` that holds one of them. It keeps the
    /// descriptors alive.
    public init(_ pool: DescriptorPool) {
        self.init(tables: pool.messages.map { ($0.table, $0.storage) })
    }
}
