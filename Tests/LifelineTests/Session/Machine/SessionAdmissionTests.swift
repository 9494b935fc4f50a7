import Lifeline
import Testing

/// Every stage of a connection's admission, with every kind of frame.
struct SessionAdmissionTests {
    /// Frames are represented by names, and sessions by numbers.
    typealias Admission = SessionAdmission<String, Int>

    static let stages: [(name: String, admission: Admission)] = {
        let waiting = Admission()
        let begun = waiting.after(.hello(isResume: false))
        let resuming = waiting.after(.hello(isResume: true))
        var attached = resuming
        _ = attached.attach(to: 7)
        var over = attached
        over.end()
        return [
            ("waiting", waiting), ("begun", begun), ("begun, goodbye", begun.after(.goodbye)), ("resuming", resuming),
            ("resuming, goodbye", resuming.after(.goodbye)), ("attached", attached), ("over", over),
        ]
    }()

    static let frames: [Admission.Kind] = [
        .hello(isResume: false), .hello(isResume: true), .goodbye, .heartbeat, .other,
    ]

    @Test func everyFrameInEveryStage() {
        // Frames as above, and the end of the client's side.
        let expected = """
            waiting: decide decide refuse nothing refuse leave
            begun: nothing nothing leave nothing nothing leave
            begun, goodbye: nothing nothing nothing nothing nothing leave
            resuming: nothing nothing nothing nothing nothing leave
            resuming, goodbye: nothing nothing nothing nothing nothing nothing
            attached: 7 7 7 7 7 7
            over: drop drop drop drop drop leave
            """
        let actual = Self.stages.map { stage in
            let steps = Self.frames.map { kind in
                var admission = stage.admission
                return name(admission.received("frame", kind))
            }
            return "\(stage.name): \((steps + [name(stage.admission.inputEnded())]).joined(separator: " "))"
        }
        #expect(actual.joined(separator: "\n") == expected)
    }

    @Test func theFirstGoodbyeIsKeptForTheSession() {
        for isResume in [false, true] {
            let begun = Admission().after(.hello(isResume: isResume))
            var admission = begun.after(.goodbye, "first").after(.goodbye, "second")
            #expect(admission.session == nil)
            #expect(admission.attach(to: 7) == ["first"])
            #expect(admission.session == 7)
        }
    }

    @Test func onlyAConnectionThatIsDecidedIsAttached() {
        let attachable = Self.stages.filter { stage in
            var admission = stage.admission
            return admission.attach(to: 8) != nil
        }
        #expect(attachable.map(\.name) == ["begun", "begun, goodbye", "resuming", "resuming, goodbye"])
    }

    @Test func otherFramesThanAHelloEndTheAdmission() {
        var admission = Admission().after(.other)
        guard case .drop = admission.received("hello", .hello(isResume: false)) else {
            Issue.record("A hello counts after the connection was refused.")
            return
        }
        #expect(admission.attach(to: 7) == nil)
    }

    private func name(_ step: Admission.Step) -> String {
        if case .handOver(let session) = step { "\(session)" } else { "\(step)" }
    }
}

extension SessionAdmissionTests.Admission {
    fileprivate func after(_ kind: Kind, _ frame: String = "frame") -> Self {
        var admission = self
        _ = admission.received(frame, kind)
        return admission
    }
}
