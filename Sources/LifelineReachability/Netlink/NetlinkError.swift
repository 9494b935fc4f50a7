/// The reason why bytes are not a valid netlink message of their kind.
package enum NetlinkError: Error, Hashable, Sendable {
    /// Fewer bytes than a message's header are left.
    case truncatedHeader
    /// A message's length is below that of its header, or above the received bytes.
    case invalidMessageLength(UInt32)
    /// A message is shorter than the structure that its type begins with.
    case truncatedPayload(type: UInt16)
    /// An attribute's length is below that of its header, or above the rest of the message.
    case invalidAttributeLength(UInt16)
    /// An attribute with a fixed size has another size, or a text is too long.
    case invalidAttribute(type: UInt16)
    /// A link has no name.
    case missingName(index: Int32)
    /// A prefix is longer than an address.
    case invalidPrefixLength(UInt8)
    /// A dump has more records than the limit.
    case tooManyRecords
    /// The kernel answered with this error number.
    case refused(Int32)
}
