internal import LifelineCore

/// The picture of a story on its page, with times in nanoseconds: events in lanes, and spans from one to another.
struct StoryPicture: Encodable, Hashable, Sendable {
    /// The maximum number of events. Only the last ones are shown.
    static let maximumEventCount = 100_000

    enum Kind: String, Encodable, Hashable, Sendable {
        case text, fault, host, connection, bytes, failure
    }

    struct Event: Encodable, Hashable, Sendable {
        let time: Int64
        /// The number of its lane.
        let lane: Int
        let kind: Kind
        let text: String
        let connection: Int?
    }

    /// A state of a host.
    struct Band: Encodable, Hashable, Sendable {
        enum Kind: String, Encodable, Hashable, Sendable {
            case noLink, asleep, killed
        }

        let lane: Int
        let kind: Kind
        let start: Int64
        /// Nil if it lasts until the end.
        var end: Int64?
    }

    struct Connection: Encodable, Hashable, Sendable {
        let number: Int
        let client: Int
        let server: Int
        let start: Int64
        /// The time at which each end opened.
        var clientOpen: Int64?
        var serverOpen: Int64?
        /// The time at which it was cut between its ends.
        var cut: Int64?
        /// The time at which each end closed or failed.
        var clientEnd: Int64?
        var serverEnd: Int64?
        /// Whether the client's end failed before it opened.
        var hasFailed = false
    }

    /// Bytes that were written together, and read together.
    struct Transfer: Encodable, Hashable, Sendable {
        let connection: Int
        let byClient: Bool
        let sent: Int64
        /// Nil if they were never read.
        let received: Int64?
        let byteCount: Int
    }

    private(set) var lanes: [String] = []
    private(set) var events: [Event] = []
    /// The number of earlier events, which are not shown.
    private(set) var omittedEventCount = 0
    private(set) var bands: [Band] = []
    private(set) var connections: [Connection] = []
    private(set) var transfers: [Transfer] = []
    private(set) var end: Int64 = 0

    init(_ notes: [Note], hosts: [String]) {
        var drawing = StoryDrawing(hosts: hosts)
        for note in notes { drawing.add(note) }
        drawing.finish()
        let omittedCount = max(0, notes.count - StoryPicture.maximumEventCount)
        let start = omittedCount == 0 ? .min : notes[omittedCount].time.nanoseconds
        lanes = drawing.places.map { $0.name.escaped(limit: 100) }
        events = notes.dropFirst(omittedCount).map { drawing.event(of: $0) }
        omittedEventCount = omittedCount
        bands = drawing.bands.filter { $0.end ?? .max >= start }
        connections = drawing.connections.filter {
            max($0.clientEnd ?? .max, $0.clientOpen == nil ? .min : $0.serverEnd ?? .max) >= start
        }
        transfers = drawing.transfers.filter { $0.sent >= start }
        end = notes.last?.time.nanoseconds ?? 0
    }
}

/// Combines notes into bands, connections and transfers.
private struct StoryDrawing {
    /// The places of the lanes, in order.
    private(set) var places: [Note.Place] = []
    private(set) var bands: [StoryPicture.Band] = []
    private(set) var connections: [StoryPicture.Connection] = []
    private(set) var transfers: [StoryPicture.Transfer] = []

    private struct BandKey: Hashable {
        let lane: Int
        let kind: StoryPicture.Band.Kind
    }

    private struct Direction: Hashable {
        let connection: Int
        let byClient: Bool
    }

    private var lanes: [Note.Place: Int] = [:]
    /// Indices in `bands` and `connections`.
    private var lastBands: [BandKey: Int] = [:]
    private var connectionPlaces: [Int: Int] = [:]
    /// Writes that were not read, each with the time.
    private var unread: [Direction: (writes: [(time: Int64, byteCount: Int)], readCount: Int)] = [:]

    init(hosts: [String]) {
        for place in [.story] + hosts.map(Note.Place.host) + [.network] { _ = lane(of: place) }
    }

    private mutating func lane(of place: Note.Place) -> Int {
        if let lane = lanes[place] { return lane }
        lanes[place] = places.count
        places.append(place)
        return places.count - 1
    }

    mutating func add(_ note: Note) {
        let (time, lane) = (note.time.nanoseconds, lane(of: note.lanePlace))
        switch note.event {
        case .link(let isUp):
            isUp ? endBand(.noLink, lane, time) : beginBand(.noLink, lane, time)
        case .sleep(let duration):
            beginBand(.asleep, lane, time, until: (note.time + duration).nanoseconds)
        case .killed:
            beginBand(.killed, lane, time)
        case .started:
            endBand(.killed, lane, time)
        case .connection(let number, .begins(let server)):
            connectionPlaces[number] = connections.count
            let serverLane = self.lane(of: .host(server))
            connections.append(
                StoryPicture.Connection(number: number, client: lane, server: serverLane, start: time)
            )
        case .connection(let number, let event):
            guard let place = connectionPlaces[number] else { return }
            add(event, time, to: place, number)
        case .text, .fault, .storyEnded:
            break
        }
    }

    private mutating func add(_ event: Note.ConnectionEvent, _ time: Int64, to place: Int, _ number: Int) {
        switch event {
        case .begins, .inputEnded:
            break
        case .opened:
            connections[place].clientOpen = time
        case .accepted:
            connections[place].serverOpen = time
        case .cut:
            connections[place].cut = time
        case .ended(_, byClient: true, let wasOpen):
            connections[place].clientEnd = time
            connections[place].hasFailed = !wasOpen
        case .ended(_, byClient: false, _):
            connections[place].serverEnd = time
        case .wrote(let byteCount, let byClient):
            unread[Direction(connection: number, byClient: byClient), default: ([], 0)].writes
                .append((time, byteCount))
        case .read(let byteCount, let byClient):
            read(byteCount, time, Direction(connection: number, byClient: !byClient))
        }
    }

    /// Assigns read bytes to writes, in the order in which they were written.
    private mutating func read(_ byteCount: Int, _ time: Int64, _ direction: Direction) {
        guard var (writes, readCount) = unread.removeValue(forKey: direction) else { return }
        var rest = byteCount
        while rest > 0, readCount < writes.count {
            let count = min(rest, writes[readCount].byteCount)
            rest -= count
            addTransfer(direction, sent: writes[readCount].time, received: time, count)
            writes[readCount].byteCount -= count
            if writes[readCount].byteCount == 0 { readCount += 1 }
        }
        if readCount == writes.count { (writes, readCount) = ([], 0) }
        unread[direction] = (writes, readCount)
    }

    private mutating func addTransfer(_ direction: Direction, sent: Int64, received: Int64?, _ byteCount: Int) {
        transfers.append(
            StoryPicture.Transfer(
                connection: direction.connection,
                byClient: direction.byClient,
                sent: sent,
                received: received,
                byteCount: byteCount
            )
        )
    }

    private mutating func beginBand(
        _ kind: StoryPicture.Band.Kind,
        _ lane: Int,
        _ time: Int64,
        until end: Int64? = nil
    ) {
        let key = BandKey(lane: lane, kind: kind)
        if let place = lastBands[key], bands[place].end ?? .max >= time {
            bands[place].end = end.map { max($0, bands[place].end ?? .max) }
            return
        }
        lastBands[key] = bands.count
        bands.append(StoryPicture.Band(lane: lane, kind: kind, start: time, end: end))
    }

    private mutating func endBand(_ kind: StoryPicture.Band.Kind, _ lane: Int, _ time: Int64) {
        guard let place = lastBands.removeValue(forKey: BandKey(lane: lane, kind: kind)) else { return }
        bands[place].end = time
    }

    /// Adds the writes that were never read.
    mutating func finish() {
        for (direction, (writes, readCount)) in unread {
            for write in writes[readCount...] {
                addTransfer(direction, sent: write.time, received: nil, write.byteCount)
            }
        }
        transfers.sort { ($0.sent, $0.connection, $0.received ?? .max) < ($1.sent, $1.connection, $1.received ?? .max) }
    }

    func event(of note: Note) -> StoryPicture.Event {
        let connection: Int? = if case .connection(let number, _) = note.event { number } else { nil }
        return StoryPicture.Event(
            time: note.time.nanoseconds,
            lane: lanes[note.lanePlace] ?? 0,
            kind: note.kind,
            // About a page of text.
            text: note.event.text.escaped(limit: 2_000),
            connection: connection
        )
    }
}

extension Note.Place {
    /// The name of its lane.
    fileprivate var name: String {
        switch self {
        case .host(let name): name
        case .network: "network"
        case .story, .simulation: "story"
        }
    }
}

extension Note {
    fileprivate var lanePlace: Place {
        switch (place, event) {
        case (_, .fault): .network
        case (.simulation, _): .story
        default: place
        }
    }

    fileprivate var kind: StoryPicture.Kind {
        switch event {
        case .text, .storyEnded(nil): .text
        case .fault, .connection(_, .cut): .fault
        case .link, .sleep, .killed, .started: .host
        case .connection(_, .wrote), .connection(_, .read): .bytes
        case .connection: .connection
        case .storyEnded: .failure
        }
    }
}
