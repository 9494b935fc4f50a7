import LifelineWellKnownTypes
import TripProtos

let trip = Trips_V1_Trip.with {
    $0.title = "To the sea"
    $0.stops = [.with { $0.name = "Zürich" }, .with { $0.name = "Genoa" }]
    $0.byName["Genoa", default: .init()].latitude = 44.4
    $0.leavesAt = .init(sinceEpoch: .seconds(1_800_000_000))
}
let copy = try Trips_V1_Trip(serializedBytes: trip.serializedBytes())
precondition(copy == trip)
print(copy.textFormatString())
