/// Bytes that a program writes to a connection or reads from it, or the end of the connection at one side.
package struct Traffic {
    package enum Event {
        case wrote(ArraySlice<UInt8>)
        case read(ArraySlice<UInt8>)
        /// The side has let go of the connection: it closed it, learnt of its end, or was killed.
        case ended
    }

    /// The number of the connection.
    package let connection: Int
    package let isByClient: Bool
    package let event: Event
}
