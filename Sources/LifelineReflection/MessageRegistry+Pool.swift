public import LifelineMessages

extension MessageRegistry {
    /// A registry of the message types and extensions of a pool. It keeps the descriptors alive.
    public init(_ pool: DescriptorPool) {
        let messages = pool.messages.map { (table: $0.table, owner: $0.storage) }
        let extensions = pool.extensions.compactMap { field in
            field.extensionTable.map { (table: $0, owner: field.storage) }
        }
        self.init(tables: messages + extensions)
    }
}
