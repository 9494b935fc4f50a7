/// A program that listens for streams, and accepts or refuses them.
protocol SimulatedListener: AnyObject {
    var host: SimulatedHost { get }
    /// Accepts or refuses a stream.
    func answer(_ stream: SimulatedStream)
    /// The stream is established. Returns its owner; nil to refuse it after all.
    func accepted(_ stream: SimulatedStream) -> (any StreamOwner)?
}
