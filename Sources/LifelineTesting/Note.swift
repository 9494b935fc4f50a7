internal import LifelineCore

/// An event in a simulation.
struct Note: Sendable {
    /// The place of the event.
    enum Place: Hashable, Sendable {
        case host(String)
        /// Between hosts.
        case network
        /// In the story of a world.
        case story
        /// No particular place.
        case simulation
    }

    /// The event itself.
    enum Event: Sendable {
        /// Words of a program or of the simulation.
        case text(String)
        case fault(number: Int, String)
        case link(isUp: Bool)
        /// The host stands still for this time.
        case sleep(Duration)
        /// The host's programs were killed.
        case killed
        /// Killed programs were started again.
        case started
        case connection(Int, ConnectionEvent)
        /// The story has ended, with or without a failure.
        case storyEnded(failure: String?)
    }

    /// An event of a connection.
    enum ConnectionEvent: Sendable {
        /// A client starts to connect to a host.
        case begins(to: String)
        /// The server has accepted it.
        case accepted
        /// The client's end is open.
        case opened
        /// A program has handed bytes to its kernel.
        case wrote(byteCount: Int, byClient: Bool)
        /// A program has read bytes.
        case read(byteCount: Int, byClient: Bool)
        /// A program has read the end: the peer writes no more.
        case inputEnded
        /// It is cut between its ends: with a reset, or so that neither end is told.
        case cut(isReset: Bool)
        /// An end of it is over, before or after it was open.
        case ended(String, byClient: Bool, wasOpen: Bool)
    }

    let time: MonotonicTime
    let place: Place
    let event: Event

    /// The line of the trace.
    var line: String {
        switch place {
        case .host(let name): "\(time) \(name): \(event.text)"
        case .network: "\(time) network: \(event.text)"
        case .story: "\(time) story: \(event.text)"
        case .simulation: "\(time) \(event.text)"
        }
    }

    /// Whether it is one of the many small steps in which bytes pass.
    var isTransfer: Bool {
        switch event {
        case .connection(_, .wrote), .connection(_, .read): true
        default: false
        }
    }
}

extension Note.Event {
    /// Its words in the trace.
    var text: String {
        switch self {
        case .text(let text): text
        case .fault(let number, let text): "fault \(number): \(text)"
        case .link(let isUp): "link \(isUp ? "up" : "down")"
        case .sleep(let duration): "sleeps for \(duration)"
        case .killed: "killed"
        case .started: "started"
        case .connection(let number, .begins(let host)): "connects to \(host), connection \(number)"
        case .connection(let number, .accepted): "accepts connection \(number)"
        case .connection(let number, .opened): "connection \(number) is open"
        case .connection(let number, .wrote(let count, _)): "writes \(bytes(count)) to connection \(number)"
        case .connection(let number, .read(let count, _)): "reads \(bytes(count)) from connection \(number)"
        case .connection(let number, .inputEnded): "reads the end of connection \(number)"
        case .connection(let number, .cut(let isReset)): "connection \(number) \(isReset ? "reset" : "goes silent")"
        case .connection(let number, .ended(let reason, _, let wasOpen)):
            "connection \(number) \(wasOpen ? "ends" : "fails"): \(reason)"
        case .storyEnded(let failure?): "fails: \(failure)"
        case .storyEnded(nil): "ends"
        }
    }

    private func bytes(_ count: Int) -> String { "\(count) byte\(count == 1 ? "" : "s")" }
}
