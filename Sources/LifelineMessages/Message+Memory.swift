internal import CLifelineMessages

extension Message {
    /// The bytes of memory that the message takes, with all others that share its storage.
    package var memoryByteCount: Int {
        guard let storage = _message.untyped.storage else { return 0 }
        defer { extendLifetime(storage) }
        return _MessageStorage.overhead + storage.capacity * MemoryLayout<UInt64>.stride
            + lifeline_arena_block_bytes(storage.arena)
    }
}
