/// Sends that wait for room, the first one first. Each call takes constant time on average, but for removing one out of the
/// middle, which searches.
package struct WaitingLine {
    /// One place. Without a length, its send was cancelled.
    private struct Place {
        var id: UInt64
        var byteCount: Int?
    }

    /// By ascending name.
    private var places: [Place] = []
    /// The places before this index have been left.
    private var head = 0
    private var lastID: UInt64 = 0
    /// How many wait.
    package private(set) var count = 0

    package init() {}

    /// Whether nobody waits.
    package var isEmpty: Bool { count == 0 }

    /// How many places are held in memory: about two for each that waits at most.
    var placeCount: Int { places.count }

    /// A send goes to the end of the line. Returns its name.
    package mutating func append(byteCount: Int) -> UInt64 {
        lastID += 1
        places.append(Place(id: lastID, byteCount: byteCount))
        count += 1
        return lastID
    }

    /// Takes the first send out.
    package mutating func popFirst() -> (id: UInt64, byteCount: Int)? {
        while head < places.count {
            let place = places[head]
            head += 1
            guard let byteCount = place.byteCount else { continue }
            count -= 1
            tidyUp()
            return (place.id, byteCount)
        }
        return nil
    }

    /// Takes a send out. Tells whether it still waited.
    package mutating func remove(_ id: UInt64) -> Bool {
        var (low, high) = (head, places.count)
        while low < high {
            let middle = low + (high - low) / 2
            if places[middle].id < id { low = middle + 1 } else { high = middle }
        }
        guard low < places.count, places[low].id == id, places[low].byteCount != nil else { return false }
        places[low].byteCount = nil
        count -= 1
        tidyUp()
        return true
    }

    /// Takes all out, and returns their names.
    package mutating func removeAll() -> [UInt64] {
        defer { (places, head, count) = ([], 0, 0) }
        return places[head...].filter { $0.byteCount != nil }.map(\.id)
    }

    /// Drops the places that were left once they are the most, so that each is moved once on average.
    private mutating func tidyUp() {
        guard places.count > 2 * count + 64 else { return }
        places = places[head...].filter { $0.byteCount != nil }
        head = 0
    }
}
