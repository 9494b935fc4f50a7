/// The demand of a receiver after a batch.
package enum ReadDemand: Sendable {
    /// Read on.
    case more
    /// Stop reading until `TransportConnection.resumeReading()`.
    case pause
    /// The queue has ended and did not take the batch.
    case refused
}
