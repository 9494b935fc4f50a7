/// The script of `SessionCutRun`, cut at every byte.
package enum SessionCuts {
    package typealias Place = SessionCutRun.Place
    package typealias Death = SessionCutRun.Death

    /// Plays the script without a cut. Returns the view of the users, and how many bytes that takes.
    package static func uncut() -> (seen: SessionCutRun.Seen, byteCounts: Place, isAtRest: Bool) {
        let run = SessionCutRun()
        let came = run.run(cutAt: .never, .seen)
        return (run.seen, came, run.isAtRest && run.failure == nil)
    }

    /// Runs it with one cut. Returns what is other than without one; nil when nothing is.
    package static func run(_ place: Place, _ death: Death, piece: Int = .max, expecting seen: SessionCutRun.Seen)
        -> String?
    {
        let run = SessionCutRun()
        run.run(cutAt: place, death, piece: piece)
        if let failure = run.failure { return "cut at \(place), \(death): \(failure)" }
        if run.seen != seen { return "cut at \(place), \(death): users saw \(run.seen)" }
        return run.isAtRest ? nil : "cut at \(place), \(death): it does not come to rest"
    }

    /// Each direction alone, the other one going on as long as it can.
    package static func alone(_ byteCounts: Place) -> [Place] {
        (0...byteCounts.toClient).map { Place(toClient: $0, toServer: .max) }
            + (0...byteCounts.toServer).map { Place(toClient: .max, toServer: $0) }
    }

    /// Every pair of bytes with this one to the client.
    package static func together(toClient: Int, _ byteCounts: Place) -> [Place] {
        (0...byteCounts.toServer).map { Place(toClient: toClient, toServer: $0) }
    }
}
