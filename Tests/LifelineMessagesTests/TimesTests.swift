import LifelineMessages
import LifelineWellKnownTypes
import Testing

/// Durations and moments, with any values that a peer can put into their fields.
@Suite struct TimesTests {
    @Test func timesAtTheEdgesOfTheirFields() {
        for seconds in [Int64.min, -1, 0, .max] {
            for nanos in [Int32.min, -1, 0, .max] {
                let duration = Google_Protobuf_Duration.with { ($0.seconds, $0.nanos) = (seconds, nanos) }
                _ = "\(duration.duration)"
                let again = Google_Protobuf_Duration(duration.duration)
                #expect(abs(Int64(again.nanos)) < 1_000_000_000)
                let moment = Google_Protobuf_Timestamp.with { ($0.seconds, $0.nanos) = (seconds, nanos) }
                let same = Google_Protobuf_Timestamp(sinceEpoch: moment.sinceEpoch)
                #expect(0..<1_000_000_000 ~= same.nanos)
            }
        }
        let longest = Google_Protobuf_Duration(.seconds(Int64.max) + .seconds(5))
        #expect(longest.seconds == .max)
    }
}
