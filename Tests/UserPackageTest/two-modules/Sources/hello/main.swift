import GeoProtos
import LifelineMessages
import LifelineWellKnownTypes

// Trips_V1_Trip is this module's own; the places in it are another one's.
let sea = Geo_V1_Place.with { $0.name = "Genoa" }
let trip = Trips_V1_Trip.with {
    $0.stops = [.with { $0.name = "Zürich" }, sea]
    $0.byName["Genoa"] = sea
    $0.byName["Genoa", default: .init()].latitude = 44.4
    $0.leavesAt = .init(sinceEpoch: .seconds(1_800_000_000))
}
let copy = try Trips_V1_Trip(serializedBytes: trip.serializedBytes())
precondition(copy == trip)
print(copy.textFormatString())
