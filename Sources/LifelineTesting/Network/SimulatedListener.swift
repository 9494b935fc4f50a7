/// A program that streams lead to, and that decides over them.
protocol SimulatedListener: AnyObject {
    var host: SimulatedHost { get }
    /// Lets a stream in, or refuses it.
    func answer(_ stream: SimulatedStream)
    /// The stream stands. Returns its owner; nil if it is not let in after all.
    func accepted(_ stream: SimulatedStream) -> (any StreamOwner)?
}
