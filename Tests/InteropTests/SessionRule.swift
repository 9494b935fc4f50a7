import Lifeline
import Testing

/// A rule of sessions that `hostile-peer` breaks, and what it prints then: see Peers/README.md.
struct SessionRule: Sendable, CustomTestStringConvertible {
    let name: String
    /// Words of the goodbye that says which rule was broken; nil: there is no goodbye.
    let words: String?
    /// Whether the goodbye may be missing: malformed bytes end the connection, mostly before the goodbye is written.
    let mayLackGoodbye: Bool
    /// The code of the goodbye.
    let code: Int
    /// The fate of the session, if it is not the usual end.
    let session: String?

    init(
        _ name: String,
        _ words: String?,
        mayLackGoodbye: Bool = false,
        code: Int = 6,
        session: String? = nil
    ) {
        self.name = name
        self.words = words
        self.mayLackGoodbye = mayLackGoodbye
        self.code = code
        self.session = session
    }

    var testDescription: String { name }

    /// The limits of the other side. Some rules need a window that is smaller than the credit, and others a larger one.
    var limits: SessionLimits {
        var limits = SessionLimits()
        if ["window-frames", "window-bytes", "message-larger-than-window"].contains(name) {
            limits.maximumUnprocessedMessageCount = 4
            limits.maximumUnprocessedByteCount = 4_096
        }
        return limits
    }

    /// Checks the output of the peer.
    ///
    /// - Parameter session: the usual fate of the session; nil: there is none.
    func check(_ lines: [String], session: String?) {
        let goodbye = lines.first ?? ""
        if let words {
            let isRight = goodbye.hasPrefix("\(code) ") && goodbye.contains(words)
            #expect(isRight || (mayLackGoodbye && goodbye == Self.noGoodbye), "\(goodbye)")
        } else {
            #expect(goodbye == Self.noGoodbye)
        }
        #expect(Array(lines.dropFirst()) == [self.session ?? session].compactMap(\.self))
    }

    private static let noGoodbye = "no goodbye"
}

extension SessionRule {
    /// In place of a hello.
    static let openings = [
        SessionRule("first-frame-no-hello", "before the session was opened"),
        // The ping is answered, and the connection is cut if no hello follows.
        SessionRule("first-frame-a-ping", nil),
        SessionRule("hello-with-another-kind", "several kinds"),
        SessionRule("no-terms", "window takes no frame"),
        SessionRule("window-of-0-frames", "window takes no frame"),
        SessionRule("window-of-0-bytes", "window takes no frame"),
        SessionRule("window-too-small", "window takes no frame"),
        SessionRule("credit-of-0", "credit is less than 64 KiB"),
        SessionRule("credit-too-small", "credit is less than 64 KiB"),
        SessionRule("frame-limit-too-small", "less than 4 KiB"),
        SessionRule("hello-metadata-entries", "more metadata"),
        SessionRule("hello-metadata-bytes", "more metadata"),
        SessionRule("hello-too-long", "cannot be taken", mayLackGoodbye: true),
        SessionRule("hello-no-message", "no protobuf message", mayLackGoodbye: true),
        SessionRule("hello-truncated-inside", "no protobuf message", mayLackGoodbye: true),
        SessionRule("hello-length-of-6-bytes", "cannot be taken", mayLackGoodbye: true),
    ]

    /// In a session, whichever side breaks them.
    private static let ofBothSides = [
        SessionRule("frame-too-long", "cannot be taken", mayLackGoodbye: true),
        SessionRule("frame-no-message", "no protobuf message"),
        SessionRule("frame-truncated-inside", "no protobuf message"),
        SessionRule("text-no-utf-8", "not UTF-8"),
        SessionRule("length-of-6-bytes", "cannot be taken", mayLackGoodbye: true),
        SessionRule("several-kinds", "several kinds"),
        SessionRule("several-kinds-one-unknown", "several kinds"),
        SessionRule("several-kinds-unknown", "several kinds"),
        SessionRule("kind-twice", "several kinds"),
        SessionRule("method-skipped", "number 2, which is not the next one"),
        SessionRule("method-0", "number 0, which is not the next one"),
        SessionRule("method-again", "number 1, which is not the next one"),
        SessionRule("method-name-again", "number 2, which is not the next one"),
        SessionRule("method-name-empty", "name has 0 bytes"),
        SessionRule("method-name-too-long", "name has 257 bytes"),
        SessionRule("too-many-methods", "More methods were given numbers"),
        SessionRule("push-before-method", "method 1, which has no number"),
        SessionRule("push-method-0", "method 0, which has no number"),
        SessionRule("push-method-unknown", "method 2, which has no number"),
        SessionRule("unplaced-push-before-method", "method 1, which has no number"),
        SessionRule("request-before-method", "method 1, which has no number"),
        SessionRule("request-method-unknown", "method 2, which has no number"),
        SessionRule("push-metadata-entries", "more metadata"),
        SessionRule("push-metadata-entry-again", "more metadata"),
        SessionRule("unplaced-push-metadata-entries", "more metadata"),
        SessionRule("unplaced-push-metadata-bytes", "more metadata"),
        SessionRule("response-metadata-entries", "more metadata"),
        SessionRule("response-details", "more metadata or details"),
        SessionRule("serial-0", "serial 0"),
        SessionRule("serial-in-use", "serial 7"),
        SessionRule("payload-with-parts", "both a payload and parts"),
        SessionRule("part-after-end", "no more parts"),
        SessionRule("end-after-end", "no more parts"),
        SessionRule("part-without-parts-follow", "no more parts"),
        SessionRule("end-without-parts-follow", "no more parts"),
        SessionRule("responses-unacknowledged", "Thousands of urgent frames"),
        SessionRule("window-frames", "ordinary frames came than the window"),
        SessionRule("window-bytes", "ordinary frames came than the window"),
        SessionRule("message-larger-than-window", "ordinary frames came than the window"),
        SessionRule("credit-exceeded-by-push", "than its credit allows"),
        SessionRule("credit-of-nothing", "credit is for nothing"),
        SessionRule("credit-of-two", "credit is for several things"),
        SessionRule("credit-of-three", "credit is for several things"),
        SessionRule("acknowledged-unsent", "ordinary frame 1000 was acknowledged and never sent"),
        SessionRule("acknowledged-unsent-urgent", "urgent frame 1000 was acknowledged and never sent"),
        SessionRule("range-unsent", "ordinary frame 1001 was acknowledged and never sent"),
        SessionRule("range-odd", "half a range"),
        SessionRule("range-skip-0", "empty range or gap"),
        SessionRule("range-run-0", "empty range or gap"),
        SessionRule("range-overflow", "has a place above"),
        SessionRule("range-overflow-of-number", "has a place above"),
        SessionRule("ranges-too-many", "more than 1024 ranges"),
    ]

    /// In a session, by a client. Our server sends no requests, so no part of an answer can arrive.
    static let ofClients =
        ofBothSides + [
            SessionRule("second-hello", "opened twice"),
            SessionRule("second-welcome", "only the other side may send"),
            SessionRule("credit-exceeded-by-part", "than its credit allows"),
        ]

    /// In a session, by a server. Our client handles no requests, so their parts are late.
    static let ofServers =
        ofBothSides + [
            SessionRule("second-hello", "only the other side may send"),
            SessionRule("second-welcome", "opened twice"),
            SessionRule("credit-exceeded-by-response-part", "than its credit allows"),
        ]

    /// By a client that resumes.
    static let resumptions = [
        SessionRule("processed-ahead", "ordinary frame 3 was acknowledged and never sent"),
        SessionRule("received-ahead", "ordinary frame 3 was acknowledged and never sent"),
        SessionRule("urgent-ahead", "urgent frame 2 was acknowledged and never sent"),
        SessionRule("processed-behind", "ordinary frames went back to 1"),
        SessionRule("urgent-behind", "urgent frames went back to 0"),
        SessionRule("received-below-processed", "ordinary frames went back to 1"),
        SessionRule("received-below-range", "ordinary frames went back to 1"),
        SessionRule("received-behind", "ordinary frames went back to 1"),
        SessionRule("processed-behind-hello", "ordinary frames went back to 1"),
        SessionRule("resuming-without-terms", "window takes no frame", session: "the session lives"),
        SessionRule("attempt-again", "newer connection", code: 3, session: "the session lives"),
    ]

    /// In place of a server's first welcome.
    static let welcomes = [
        SessionRule("welcome-of-another-version", "Version 9"),
        SessionRule("welcome-of-version-0", "Version 0"),
        SessionRule("welcome-short-id", "15 bytes, not 16"),
        SessionRule("welcome-long-token", "17 bytes, not 16"),
        SessionRule("welcome-without-id", "0 bytes, not 16"),
        SessionRule("welcome-resumed-unasked", "Another session went on"),
        SessionRule("welcome-no-terms", "window takes no frame"),
        SessionRule("welcome-window-of-0-frames", "window takes no frame"),
        SessionRule("welcome-window-too-small", "window takes no frame"),
        SessionRule("welcome-credit-too-small", "credit is less than 64 KiB"),
        SessionRule("welcome-frame-limit-too-small", "less than 4 KiB"),
        SessionRule("welcome-metadata-entries", "more metadata"),
        SessionRule("welcome-metadata-bytes", "more metadata"),
        SessionRule("hello-for-welcome", "only the other side may send"),
        // It looks like the beginning of a frame whose rest never arrives.
        SessionRule("http-for-welcome", nil),
        SessionRule("nothing-for-welcome", nil),
    ]

    /// In place of a server's welcome for a client that resumes.
    static let returns = [
        SessionRule("http-for-second-welcome", nil, session: "the client goes on with the session"),
        SessionRule("nothing-for-second-welcome", nil, session: "the client goes on with the session"),
        SessionRule("violation-for-second-welcome", nil),
        SessionRule("second-welcome-received-ahead", "ordinary frame 1000 was acknowledged and never sent"),
        SessionRule("second-welcome-processed-ahead", "ordinary frame 1000 was acknowledged and never sent"),
        SessionRule("second-welcome-urgent-ahead", "urgent frame 1000 was acknowledged and never sent"),
        SessionRule("second-welcome-no-terms", "window takes no frame"),
    ]

    /// Frames from both sides that seem to break a rule, but do not.
    static let tolerated = [
        "empty-frame", "unknown-kinds", "kind-of-another-wire-type", "kind-beside-another-wire-type", "long-varints",
        "long-length", "fields-in-another-order", "unknown-fields", "late-frames", "unplaced-late-parts",
        "credit-of-unknown", "lower-numbers", "push-of-unknown-method", "request-of-unknown-method",
        "request-of-another-form", "request-metadata-entries", "time-out-of-10-bytes", "blanks",
        "cancel-before-request", "serial-again-after-cancel",
    ]

    /// `hostile-peer` regards this as a broken rule, but Lifeline does not: only the bytes of the name count, and 16
    /// KiB are within the limit.
    private static let untested = ["hello-name-too-long"]

    static var allNames: Set<String> {
        let rules = openings + ofClients + ofServers + resumptions + welcomes + returns
        return Set(rules.map(\.name) + tolerated + untested)
    }
}
