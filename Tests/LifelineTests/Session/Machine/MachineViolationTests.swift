import Lifeline
import LifelineCore
import Testing

/// Each rule that a peer can break, at both ends.
@Suite struct MachineViolationTests {
    typealias Frame = HostileFrame

    static let roles: [SessionRole] = [.client, .server]
    private static let name = Frame.method(1, "a.B/C")

    /// The rule that a peer breaks by sending these frames to an open end.
    private func violation(
        _ role: SessionRole,
        _ options: SessionOptions,
        _ frames: [[UInt8]]
    ) -> SessionViolation? {
        let peer = MachineHostilePeer.opened(role, options)
        peer.feed(frames)
        #expect(peer.failure == nil)
        return peer.violation
    }

    private func violation(_ role: SessionRole, _ frames: [[UInt8]]) -> SessionViolation? {
        violation(role, SessionOptions(), frames)
    }

    /// An open end with one sent call, and a method of the peer.
    private func withCall(_ role: SessionRole, hasParts: Bool = false) -> MachineHostilePeer {
        let peer = MachineHostilePeer.opened(role)
        peer.request("x.Y/Z", hasParts: hasParts)
        _ = peer.offered()
        peer.feed(Self.name)
        return peer
    }

    private func undecodable(_ text: String) -> SessionViolation { .undecodable(text) }

    private let noMessage = SessionViolation.undecodable("It is no protobuf message.")

    // MARK: Durable calls

    /// Only clients call, and only servers reply.
    @Test func callsAndRepliesOfTheWrongSide() {
        let call = Frame.push(1, Frame.number(4, 1) + Frame.number(5, 1))
        let reply = Frame.push(1, Frame.bytes(6, Frame.number(1, 1)))
        let notDurable = Frame.push(1, Frame.number(5, 1))
        #expect(violation(.server, [Self.name, reply]) == .callOrReply)
        #expect(violation(.server, [Self.name, notDurable]) == .callOrReply)
        #expect(violation(.client, [Self.name, call]) == .callOrReply)
        // The frame is in the same read as the end of the session.
        #expect(violation(.client, [Self.name, call, Frame.goodbye(6)]) == .callOrReply)
        #expect(violation(.server, [Self.name, call]) == nil)
        #expect(violation(.client, [Self.name, reply]) == nil)
    }

    @Test func repliesThatCannotBeRead() {
        func reply(_ fields: [UInt8]) -> [UInt8] { Frame.push(1, Frame.bytes(6, fields)) }
        #expect(violation(.client, [Self.name, reply([0x08])]) == noMessage)
        #expect(violation(.client, [Self.name, reply(Frame.bytes(3, [0xFF]))]) != nil)
        #expect(violation(.client, [Self.name, reply(Frame.metadata(5, count: 129))]) == .tooManyEntries)
    }

    // MARK: Consequences of a violation

    @Test func aServerEndsItsSession() {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed(Self.name)
        _ = peer.offered()
        peer.forgetEvents()
        peer.feed(Frame.push(9))
        #expect(peer.events == [.violated(.unknownMethod(9)), .ended])
        #expect(peer.goodbyes() == [.violation])
        #expect(peer.events.last == .closed(.inOrder))
        // Later frames are ignored.
        peer.feed([Self.name, Frame.push()])
        #expect(peer.events.count == 3 && peer.failure == nil)
        #expect(peer.say(ClientOpening(attempt: 9, terms: Frame.terms))?.code == .draining)
    }

    @Test func aClientLosesItsSession() {
        let peer = withCall(.client)
        peer.feed(Frame.request(1))
        peer.forgetEvents()
        peer.feed(Frame.push(9))
        let violation = SessionViolation.unknownMethod(9)
        #expect(
            peer.events == [.violated(violation), .sessionLost, .failed(.sessionLost), .cancelled(serial: 1)]
        )
        #expect(peer.goodbyes() == [.violation])
        // The goodbye is written first, so the connection is cut a little later.
        #expect(peer.events.last == .closed(.endSending))
        peer.pass(.seconds(3))
        #expect(peer.events.last == .closed(.abortViolated(violation.message)))
        // The next connection begins another session, in which method 1 has no name.
        peer.open()
        peer.feed(Frame.push(1))
        #expect(peer.events.contains(.violated(.unknownMethod(1))))
    }

    /// Bytes that are not frames.
    @Test(arguments: roles) func aFrameThatIsTooLong(_ role: SessionRole) {
        let peer = MachineHostilePeer.opened(role)
        peer.receivedViolation(.undecodable("It is too long."))
        #expect(peer.violation == .undecodable("It is too long."))
    }

    // MARK: Frames

    @Test(arguments: roles) func severalKinds(_ role: SessionRole) {
        let several = undecodable("It has several kinds.")
        let blank = Frame.of(.blank)
        #expect(violation(role, [blank + blank]) == several)
        #expect(violation(role, [Self.name + Frame.push()]) == several)
        // This holds even if one or both kinds are unknown.
        #expect(violation(role, [blank + Frame.bytes(99, [])]) == several)
        #expect(violation(role, [Frame.bytes(98, []) + Frame.bytes(99, [])]) == several)
    }

    @Test(arguments: roles) func bytesThatAreNoMessage(_ role: SessionRole) {
        // A length beyond the end, a tag of field 0, an end of a group, a wire type that does not exist.
        for frame in [[0x42, 5, 1], [0x42], [0x02, 0], [0x44], [0x46], [0x80]] as [[UInt8]] {
            #expect(violation(role, [frame]) == noMessage, "\(frame)")
        }
        let broken: [UInt8] = [0x08]
        let kinds: [FrameKind] = [
            .goodbye, .acknowledgement, .credit, .push, .request, .requestPart, .requestEnd, .responsePart, .response,
            .method, .urgentResponse, .cancel, .unplacedPush, .unplacedRequestPart, .unplacedResponsePart,
        ]
        for kind in kinds { #expect(violation(role, [Frame.of(kind, broken)]) == noMessage, "\(kind)") }
    }

    @Test(arguments: roles) func textThatIsNoText(_ role: SessionRole) {
        let noText = undecodable("It has a text that is not UTF-8.")
        let entry = Frame.bytes(1, [0xFF])
        #expect(violation(role, [Frame.of(.method, Frame.number(1, 1), Frame.bytes(2, [0xFF]))]) == noText)
        #expect(violation(role, [Frame.of(.goodbye, Frame.bytes(2, [0xFF]))]) == noText)
        #expect(violation(role, [Self.name, Frame.push(1, Frame.bytes(2, entry))]) == noText)
        #expect(violation(role, [Self.name, Frame.request(1, Frame.bytes(5, entry))]) == noText)
        #expect(violation(role, [Frame.response(.response, 1, Frame.bytes(3, [0xFF]))]) == noText)
        #expect(violation(role, [Frame.response(.urgentResponse, 1, Frame.bytes(4, entry))]) == noText)
    }

    @Test(arguments: roles) func framesThatAreIgnored(_ role: SessionRole) {
        let peer = MachineHostilePeer.opened(role)
        _ = peer.offered()
        peer.forgetEvents()
        // Frames without a kind; with fields of other wire types, even of known numbers; and of unknown kinds without
        // places.
        peer.feed([[], Frame.number(8, 1), Frame.number(14, 1) + Frame.number(200, 7)])
        peer.feed([48 + 5, 1_000, 1 << 28].map { Frame.bytes($0, [1, 2, 3]) })
        peer.feed([Frame.of(.ping, Frame.number(1, 1)), Frame.of(.pong)])
        #expect(peer.events.isEmpty && !peer.machine.isUsed)
        #expect(peer.acknowledgement() == nil)
    }

    @Test(arguments: roles) func unknownKindsHaveTheirPlaces(_ role: SessionRole) {
        let peer = MachineHostilePeer.opened(role)
        _ = peer.offered()
        peer.forgetEvents()
        // The content of an unknown kind is not checked.
        peer.feed([16, 31, 20].map { Frame.bytes($0, [0xFF]) })
        peer.feed([34, 47].map { Frame.bytes($0, [0xFF]) })
        // Known kinds behind skipped fields have places, too.
        peer.feed(Frame.number(3, 1) + Frame.of(.blank))
        #expect(peer.events.isEmpty)
        #expect(peer.acknowledgement() == Acknowledgement(ordinary: 4, urgent: 2))
    }

    @Test(arguments: roles) func unknownFieldsAreSkipped(_ role: SessionRole) {
        let extra = Frame.number(1_000, 1) + Frame.bytes(1_001, [0xFF])
        let peer = withCall(role)
        peer.feed([Frame.of(.method, Frame.number(1, 2), Frame.bytes(2, [0x62]), extra), Frame.push(2, extra)])
        #expect(peer.events.suffix(2) == [.method(number: 2, name: "b"), .push(method: 2)])
    }

    // MARK: Openings

    @Test(arguments: roles) func openingsAtTheWrongTime(_ role: SessionRole) {
        let (same, other): (FrameKind, FrameKind) = role == .client ? (.welcome, .hello) : (.hello, .welcome)
        #expect(violation(role, [Frame.of(same)]) == .openedTwice)
        #expect(violation(role, [Frame.of(other)]) == .unexpectedFrame)
    }

    /// Only the connection ends, not the session: the peer that answered may not know the session.
    @Test func otherFramesInPlaceOfAWelcome() {
        let cases: [([UInt8], SessionViolation)] = [
            (Frame.push(), .notOpened), (Frame.of(.blank), .notOpened), (Frame.bytes(20, []), .notOpened),
            (Frame.ending(.cancel), .notOpened), (Frame.bytes(47, []), .notOpened),
            (Frame.push(kind: .unplacedPush), .notOpened), (Frame.of(.hello), .unexpectedFrame),
            (Frame.of(.blank) + Frame.of(.blank), .undecodable("It has several kinds.")), ([0x42], noMessage),
            (Frame.of(.welcome, [0x08]), noMessage),
        ]
        for hasSession in [false, true] {
            for (frame, violation) in cases {
                let peer = MachineHostilePeer(.client)
                if hasSession {
                    peer.open()
                    peer.cut()
                }
                peer.connect()
                peer.forgetEvents()
                peer.feed(frame)
                #expect(peer.events == [.violated(violation)])
                // A server that knew the session would end it.
                #expect(peer.goodbyes() == (hasSession ? [] : [.violation]))
                peer.feed(Frame.push())
                #expect(peer.events.count == 2, "only its connection is closed")
                // The session continues over the next connection.
                peer.cut()
                peer.open(isResumed: hasSession)
                #expect(peer.events.last == .opened(isResumed: hasSession))
            }
        }
    }

    /// A peer that sends a welcome knows the protocol, so a malformed one breaks its rules: the session is lost.
    @Test func welcomesWithoutCredentials() {
        let cases: [([UInt8], SessionViolation)] = [
            ([], .malformedCredentials(byteCount: 0)),
            (Frame.bytes(2, .init(repeating: 1, count: 16)), .malformedCredentials(byteCount: 0)),
            (Frame.bytes(2, .init(repeating: 1, count: 17)), .malformedCredentials(byteCount: 17)),
        ]
        for hasSession in [false, true] {
            for (fields, violation) in cases {
                let peer = MachineHostilePeer(.client)
                if hasSession {
                    peer.open()
                    peer.cut()
                }
                peer.connect()
                peer.forgetEvents()
                peer.feed(Frame.of(.welcome, fields))
                #expect(peer.events == [.violated(violation)] + (hasSession ? [.sessionLost] : []))
                #expect(peer.goodbyes() == [.violation])
                peer.cut()
                peer.open(isResumed: false)
                #expect(peer.events.last == .opened(isResumed: false))
            }
        }
    }

    @Test func framesThatAreIgnoredBeforeTheWelcome() {
        let peer = MachineHostilePeer(.client)
        peer.connect()
        let frames = [
            [], Frame.of(.ping), Frame.of(.pong), Frame.acknowledgement(9), Frame.credit(1, 1, 1),
            Frame.bytes(5, [0xFF]), Frame.bytes(99, [0xFF]), Frame.number(1, 1),
        ]
        peer.feed(frames)
        #expect(peer.events.isEmpty)
        peer.welcome(isResumed: false)
        #expect(peer.events == [.opened(isResumed: false)])
    }

    @Test func welcomesThatBreakTheRules() {
        let other = SessionCredentials(id: SessionID(9, 9), token: SessionToken(3, 4))
        for version in [0, 2, .max] as [UInt32] {
            let peer = MachineHostilePeer(.client)
            peer.connect()
            peer.welcome(isResumed: false, version: version)
            #expect(peer.events == [.violated(.version(version))])
        }
        // The hello has named another session, or none.
        let peer = MachineHostilePeer.opened(.client)
        peer.cut()
        peer.connect()
        peer.forgetEvents()
        peer.welcome(isResumed: true, credentials: other)
        #expect(peer.events == [.violated(.otherSession), .sessionLost])
        let newcomer = MachineHostilePeer(.client)
        newcomer.connect()
        newcomer.welcome(isResumed: true)
        #expect(newcomer.events == [.violated(.otherSession)])
    }

    @Test func hellosWithoutACommonVersion() {
        for (lowest, highest) in [(2, 3), (0, 0), (2, 1)] as [(UInt32, UInt32)] {
            let peer = MachineHostilePeer(.server)
            peer.say(
                ClientOpening(minimumVersion: lowest, maximumVersion: highest, attempt: 1, terms: Frame.terms)
            )
            #expect(peer.events == [.violated(.version(highest)), .ended])
        }
        let peer = MachineHostilePeer(.server)
        peer.say(ClientOpening(minimumVersion: 0, maximumVersion: .max, attempt: 1, terms: Frame.terms))
        #expect(peer.events == [.opened(isResumed: false)])
    }

    /// Both openings have the same terms, which are checked by the parser.
    @Test func termsThatAreTooSmall() {
        func terms(_ numbers: [(UInt32, UInt64)]) -> [UInt8] {
            Frame.bytes(7, numbers.flatMap { Frame.number($0.0, $0.1) })
        }
        let enough: [(UInt32, UInt64)] = [(1, 1), (2, 4_096), (3, 65_536)]
        let cases: [([(UInt32, UInt64)], SessionViolation?)] = [
            ([], .emptyWindow), (enough + [(1, 0)], .emptyWindow), (enough + [(2, 4_095)], .emptyWindow),
            (enough + [(3, 65_535)], .smallCredit),
            (enough + [(5, 4_095)], .frameLimit(4_095)), (enough + [(5, 1)], .frameLimit(1)),
            // 0 stands for the default length, and for one request.
            (enough, nil), (enough + [(5, 4_096), (4, 0)], nil), (enough + [(2, .max), (3, .max), (4, 1 << 31)], nil),
        ]
        let credentials = Frame.bytes(2, SessionID(1, 2).bytes) + Frame.bytes(3, SessionID(3, 4).bytes)
        for (numbers, expected) in cases {
            let client = MachineHostilePeer(.client)
            client.connect()
            client.feed(Frame.of(.welcome, Frame.number(1, 1), credentials, terms(numbers)))
            #expect(client.violation == expected, "\(numbers)")
            let server = MachineHostilePeer(.server)
            let body = Frame.number(1, 1) + Frame.number(2, 1) + terms(numbers)
            do {
                let hello = try body.withUnsafeBytes { try ClientOpening(parsing: $0) }
                server.say(hello)
                #expect(server.violation == expected, "\(numbers)")
            } catch {
                #expect(error as? SessionViolation == expected)
            }
        }
    }

    @Test func openingsWithTooMuchMetadata() {
        func hello(_ fields: [UInt8]) -> SessionViolation? {
            let terms = Frame.bytes(7, Frame.number(1, 1) + Frame.number(2, 4_096) + Frame.number(3, 65_536))
            do {
                _ = try (terms + fields).withUnsafeBytes { try ClientOpening(parsing: $0) }
                return nil
            } catch { return error as? SessionViolation }
        }
        #expect(hello(Frame.metadata(9, count: 128)) == nil)
        #expect(hello(Frame.metadata(9, count: 129)) == .tooManyEntries)
        // A repeated entry counts again.
        #expect(hello((0..<129).flatMap { _ in Frame.metadata(9, count: 1) }) == .tooManyEntries)
        let name = [UInt8](repeating: 0x61, count: 16 << 10)
        #expect(hello(Frame.bytes(8, name)) == nil)
        #expect(hello(Frame.bytes(8, name + [0x61])) == .tooManyEntries)
        #expect(hello(Frame.bytes(8, name) + Frame.metadata(9, count: 1)) == .tooManyEntries)
        for (count, expected) in [(128, nil), (129, SessionViolation.tooManyEntries)] {
            let opening = ServerOpening(
                version: 1,
                credentials: MachineHostilePeer.credentials,
                isResumed: false,
                terms: Frame.terms,
                metadata: Dictionary(uniqueKeysWithValues: (0..<count).map { ("\($0)", "") })
            )
            let client = MachineHostilePeer(.client)
            client.connect()
            client.feed(Frame.withoutLength { opening.write(to: &$0) })
            #expect(client.violation == expected)
        }
    }

    // MARK: Progress

    /// Resumes with a progress. Before that, the peer received 4 ordinary frames and an urgent one, and acknowledged
    /// some.
    private func resume(
        _ role: SessionRole,
        _ processed: UInt64,
        _ received: UInt64,
        _ urgent: UInt64,
        after acknowledgements: [[UInt8]] = []
    ) -> SessionViolation? {
        let peer = MachineHostilePeer.opened(role)
        for _ in 0..<3 { _ = peer.push("a.B/C") }
        peer.feed([Self.name, Frame.request()])
        peer.respond(to: peer.running[0])
        _ = peer.offered()
        peer.feed(acknowledgements)
        // These messages were accepted, but not sent.
        _ = peer.push("a.B/C")
        peer.cut()
        _ = peer.push("a.B/C")
        peer.open(isResumed: true, progress: OpeningProgress(processed: processed, received: received, urgent: urgent))
        #expect(peer.failure == nil)
        return peer.violation
    }

    @Test(arguments: roles) func progressThatIsAhead(_ role: SessionRole) {
        func unknown(_ lane: SessionLane, _ place: UInt64) -> SessionViolation {
            .unknownAcknowledgement(SessionPlace(lane, place))
        }
        #expect(resume(role, 0, 0, 0) == nil)
        #expect(resume(role, 4, 4, 1) == nil)
        #expect(resume(role, 0, 5, 0) == unknown(.ordinary, 5))
        #expect(resume(role, 5, 5, 0) == unknown(.ordinary, 5))
        #expect(resume(role, .max, 4, 0) == unknown(.ordinary, .max))
        #expect(resume(role, 4, 4, 2) == unknown(.urgent, 2))
        #expect(resume(role, 0, 0, .max) == unknown(.urgent, .max))
    }

    @Test(arguments: roles) func progressThatGoesBack(_ role: SessionRole) {
        func back(_ lane: SessionLane, _ place: UInt64) -> SessionViolation {
            .acknowledgementWentBack(SessionPlace(lane, place))
        }
        // The received place is lower than the processed one.
        #expect(resume(role, 3, 2, 0) == back(.ordinary, 2))
        let some = Frame.acknowledgement(1, urgent: 1, [1, 1])
        #expect(resume(role, 1, 3, 1, after: [some]) == nil)
        #expect(resume(role, 1, 2, 1, after: [some]) == back(.ordinary, 2))
        #expect(resume(role, 0, 0, 1, after: [some]) == back(.ordinary, 0))
        #expect(resume(role, 1, 3, 0, after: [some]) == back(.urgent, 0))
    }

    // MARK: Methods

    @Test(arguments: roles) func numbersOfMethods(_ role: SessionRole) {
        #expect(violation(role, [Frame.method(0, "a")]) == .methodNumber(0))
        #expect(violation(role, [Frame.method(2, "a")]) == .methodNumber(2))
        #expect(violation(role, [Frame.method(1, "a"), Frame.method(1, "b")]) == .methodNumber(1))
        #expect(violation(role, [Frame.method(1, "a"), Frame.method(3, "b")]) == .methodNumber(3))
        let all = (1...1_024).map { Frame.method(UInt64($0), "m\($0)") }
        #expect(violation(role, all + [Frame.push(1_024)]) == nil)
        #expect(violation(role, all + [Frame.method(1_025, "m")]) == .tooManyMethods)
        #expect(violation(role, all + [Frame.push(1_025)]) == .unknownMethod(1_025))
    }

    @Test(arguments: roles) func namesOfMethods(_ role: SessionRole) {
        func name(_ count: Int) -> String { String(repeating: "n", count: count) }
        #expect(violation(role, [Frame.method(1, name(256))]) == nil)
        for count in [0, 257] {
            let expected = undecodable("Its method's name has \(count) bytes, not 1 to 256.")
            #expect(violation(role, [Frame.method(1, name(count))]) == expected)
        }
        // Bytes count, not characters.
        #expect(violation(role, [Frame.method(1, String(repeating: "é", count: 128))]) == nil)
        #expect(violation(role, [Frame.method(1, String(repeating: "é", count: 129))]) != nil)
    }

    @Test(arguments: roles) func methodsThatHaveNoNumber(_ role: SessionRole) {
        for number in [0, 2, UInt64(UInt32.max)] {
            let expected = SessionViolation.unknownMethod(UInt32(number))
            #expect(violation(role, [Self.name, Frame.push(number)]) == expected)
            #expect(violation(role, [Self.name, Frame.push(number, kind: .unplacedPush)]) == expected)
            #expect(violation(role, [Self.name, Frame.request(1, method: number)]) == expected)
        }
    }

    // MARK: Requests

    @Test(arguments: roles) func serials(_ role: SessionRole) {
        #expect(violation(role, [Self.name, Frame.request(0)]) == .noSerial)
        #expect(violation(role, [Self.name, Frame.request(7), Frame.request(7)]) == .serialInUse(7))
        // A number of 32 bits is taken modulo 2³², as in any parser.
        #expect(violation(role, [Self.name, Frame.request(1 << 32)]) == .noSerial)
        // The serial of a cancelled or answered request is free.
        let peer = MachineHostilePeer.opened(role)
        peer.feed([Self.name, Frame.request(7), Frame.ending(.cancel, 7), Frame.request(7)])
        peer.respond(to: peer.running[1])
        peer.feed(Frame.request(7))
        #expect(peer.violation == nil && peer.running.count == 2)
    }

    @Test(arguments: roles) func payloadsWithParts(_ role: SessionRole) {
        #expect(violation(role, [Self.name, Frame.request(hasParts: true, size: 1)]) == .payloadWithParts)
        #expect(violation(role, [Self.name, Frame.request(hasParts: true, size: 0)]) == nil)
    }

    @Test(arguments: roles) func partsAndEnds(_ role: SessionRole) {
        let (part, end) = (Frame.part(.requestPart), Frame.ending(.requestEnd))
        let (streamed, unary) = ([Self.name, Frame.request(hasParts: true)], [Self.name, Frame.request()])
        #expect(violation(role, streamed + [part, part, end]) == nil)
        #expect(violation(role, streamed + [part, end, part]) == .partsAfterEnd)
        #expect(violation(role, streamed + [end, end]) == .partsAfterEnd)
        #expect(violation(role, unary + [part]) == .partsAfterEnd)
        #expect(violation(role, unary + [end]) == .partsAfterEnd)
    }

    @Test(arguments: roles) func partsAndEndsThatAreLate(_ role: SessionRole) {
        let (part, end) = (Frame.part(.requestPart), Frame.ending(.requestEnd))
        let peer = MachineHostilePeer.opened(role)
        peer.feed([Self.name, Frame.request(hasParts: true)])
        peer.respond(to: peer.running[0])
        peer.feed([part, end, end, part, Frame.part(.unplacedRequestPart)])
        peer.feed([Frame.part(.requestPart, 0), Frame.ending(.requestEnd, 99), Frame.ending(.cancel, 99)])
        peer.feed([Frame.part(.responsePart, 99), Frame.part(.unplacedResponsePart, 0)])
        peer.feed([Frame.response(.response, 99), Frame.response(.urgentResponse, 0)])
        #expect(peer.violation == nil && peer.receipts.isEmpty && peer.machine.lateMessageCount == 11)
        // All of them are processed.
        #expect(peer.acknowledgement()?.ordinary == 10)
    }

    @Test(arguments: roles) func responsesThatAreLate(_ role: SessionRole) {
        let peer = withCall(role)
        let serial = UInt64(MachineHostilePeer.serial(of: peer.calls[0]))
        peer.feed([Frame.part(.responsePart, serial), Frame.response(.response, serial)])
        peer.feed([Frame.part(.responsePart, serial), Frame.response(.urgentResponse, serial)])
        #expect(peer.events.suffix(2) == [.responsePart, .completed(status: 0)])
        #expect(peer.violation == nil && peer.machine.lateMessageCount == 2)
    }

    /// A peer that sends requests but acknowledges no refusal must not fill the memory with refusals.
    @Test(arguments: roles) func urgentFramesThatAreNotAcknowledged(_ role: SessionRole) {
        let peer = MachineHostilePeer.opened(role)
        peer.keepsEvents = false
        peer.feed(Self.name)
        for _ in 0..<16_384 {
            peer.feed(Frame.request())
            peer.respond(to: peer.running[0])
        }
        #expect(!peer.isOver && peer.machine.keptSize.frameCount == 16_384)
        peer.keepsEvents = true
        peer.feed(Frame.request())
        #expect(peer.violation == .urgentFramesUnacknowledged)
    }

    // MARK: Metadata

    @Test(arguments: roles) func metadataOfMessages(_ role: SessionRole) {
        let large = Frame.metadata(5, count: 9, valueSize: 8 << 10)
        let (few, many) = (Frame.metadata(5, count: 128), Frame.metadata(5, count: 129))
        for fields in [many, large] {
            let peer = MachineHostilePeer.opened(role)
            peer.feed([Self.name, Frame.request(1, fields)])
            #expect(peer.events.last == .refused(.tooManyEntries) && peer.violation == nil)
            for kind in [FrameKind.response, .urgentResponse] {
                #expect(violation(role, [Frame.response(kind, 1, fields)]) == .tooManyEntries)
            }
        }
        #expect(violation(role, [Self.name, Frame.request(1, few), Frame.response(.response, 1, few)]) == nil)
        for kind in [FrameKind.push, .unplacedPush] {
            let push = { Frame.push(1, Frame.metadata(2, count: $0, valueSize: $1), kind: kind) }
            #expect(violation(role, [Self.name, push(128, 0)]) == nil)
            #expect(violation(role, [Self.name, push(129, 0)]) == .tooManyEntries)
            #expect(violation(role, [Self.name, push(9, 8 << 10)]) == .tooManyEntries)
        }
    }

    @Test(arguments: roles) func detailsOfResponses(_ role: SessionRole) {
        for kind in [FrameKind.response, .urgentResponse] {
            let response = { (count: Int) in Frame.response(kind, 1, Frame.metadata(4, count: count)) }
            #expect(violation(role, [response(128)]) == nil)
            #expect(violation(role, [response(129)]) == .tooManyEntries)
        }
    }

    // MARK: Acknowledgements

    @Test(arguments: roles) func acknowledgementsOfWhatWasNeverSent(_ role: SessionRole) {
        func check(_ frame: [UInt8], _ lane: SessionLane, _ place: UInt64) {
            let peer = MachineHostilePeer.opened(role)
            for _ in 0..<3 { _ = peer.push("a.B/C") }
            peer.feed([Self.name, Frame.request()])
            peer.respond(to: peer.running[0])
            _ = peer.offered()
            // The push is accepted, but not sent.
            _ = peer.push("a.B/C")
            peer.feed(frame)
            #expect(peer.violation == .unknownAcknowledgement(SessionPlace(lane, place)), "\(frame)")
        }
        check(Frame.acknowledgement(5), .ordinary, 5)
        check(Frame.acknowledgement(.max), .ordinary, .max)
        check(Frame.acknowledgement(urgent: 2), .urgent, 2)
        check(Frame.acknowledgement(4, urgent: .max), .urgent, .max)
        check(Frame.acknowledgement(0, [4, 1]), .ordinary, 5)
        check(Frame.acknowledgement(1, [1, 1, 1, 1]), .ordinary, 5)
        check(Frame.acknowledgement(0, [1, .max - 1]), .ordinary, .max)
        // Nothing was sent at all.
        let place = SessionPlace(.ordinary, 1)
        #expect(violation(role, [Frame.acknowledgement(1)]) == .unknownAcknowledgement(place))
    }

    @Test(arguments: roles) func rangesThatAreMalformed(_ role: SessionRole) {
        let empty = undecodable("Its acknowledgement has an empty range or gap.")
        let half = undecodable("Its acknowledgement has half a range.")
        let large = undecodable("Its acknowledgement has a place above 2⁶⁴.")
        #expect(violation(role, [Frame.acknowledgement(0, [0, 1])]) == empty)
        #expect(violation(role, [Frame.acknowledgement(0, [1, 0])]) == empty)
        #expect(violation(role, [Frame.acknowledgement(0, [1])]) == half)
        #expect(violation(role, [Frame.acknowledgement(0, [1, 1, 1])]) == half)
        #expect(violation(role, [Frame.acknowledgement(0, [1, .max])]) == large)
        #expect(violation(role, [Frame.acknowledgement(.max, [1, 1])]) == large)
        #expect(violation(role, [Frame.acknowledgement(0, [.max, .max])]) == large)
        let tooMany = undecodable("Its acknowledgement has more than 1024 ranges.")
        #expect(violation(role, [Frame.acknowledgement(0, .init(repeating: 1, count: 2_050))]) == tooMany)
        // The numbers are not packed.
        let unpacked = Frame.of(.acknowledgement, Frame.number(3, 1), Frame.number(3, 0))
        #expect(violation(role, [unpacked]) == empty)
    }

    @Test(arguments: roles) func acknowledgementsThatSayNothing(_ role: SessionRole) {
        let peer = MachineHostilePeer.opened(role)
        for _ in 0..<5 { _ = peer.push("a.B/C") }
        _ = peer.offered()
        peer.feed([Frame.acknowledgement(2, [1, 1]), Frame.acknowledgement(0, [3, 1]), Frame.of(.acknowledgement)])
        peer.feed([Frame.acknowledgement(1, [1, 2]), Frame.acknowledgement(2)])
        #expect(peer.violation == nil && peer.machine.keptSize.frameCount == 2)
        peer.feed([Frame.acknowledgement(6), Frame.acknowledgement(3, [2, 1]), Frame.acknowledgement(6)])
        #expect(peer.violation == nil && peer.machine.keptSize == SessionSize())
    }

    // MARK: Windows

    @Test(arguments: roles) func moreThanTheWindow(_ role: SessionRole) {
        var options = SessionOptions()
        options.inboundWindow = SessionWindow(frameCount: 4, byteCount: 8 << 10)
        let exceeded = SessionViolation.windowExceeded(.ordinary)
        let push = Frame.push()
        // The name was processed on arrival.
        #expect(violation(role, options, [Self.name, push, push, push, push]) == nil)
        #expect(violation(role, options, [Self.name, push, push, push, push, push]) == exceeded)
        #expect(violation(role, options, [Self.name, push, push, push, push, Frame.of(.blank)]) == exceeded)
        // A frame of 4,032 bytes costs half of it.
        let half = Frame.push(size: 4_032 - 8)
        #expect(half.count == 4_032)
        #expect(violation(role, options, [Self.name, half, half]) == nil)
        #expect(violation(role, options, [Self.name, half, half, Frame.bytes(20, [])]) == exceeded)
        #expect(violation(role, options, [Self.name, half, Frame.push(size: 4_033 - 8)]) == exceeded)
        // Finished messages make room, also out of order.
        let peer = MachineHostilePeer.opened(role, options)
        peer.feed([Self.name, push, push, push, push])
        peer.finish(2)
        peer.feed(push)
        #expect(peer.violation == nil)
        // Urgent frames are processed on arrival: only a single one can be too large.
        let cancel = Frame.ending(.cancel)
        #expect(violation(role, options, Array(repeating: cancel, count: 100)) == nil)
        let large = Frame.bytes(40, [UInt8](repeating: 0, count: 8 << 10))
        #expect(violation(role, options, [large]) == .windowExceeded(.urgent))
    }

    /// Such messages are dropped instead.
    @Test(arguments: roles) func unplacedMessagesWithoutRoom(_ role: SessionRole) {
        var options = SessionOptions()
        options.inboundWindow = SessionWindow(frameCount: 4, byteCount: 8 << 10)
        let peer = MachineHostilePeer.opened(role, options)
        let unplaced = Frame.push(kind: .unplacedPush)
        peer.feed([Self.name, Frame.push(), Frame.push(), unplaced, unplaced, unplaced, unplaced])
        #expect(peer.violation == nil && peer.receipts.count == 4 && peer.machine.droppedMessageCount == 2)
        // They take no room from messages with a place.
        peer.feed([Frame.push(), Frame.push()])
        #expect(peer.violation == nil)
        peer.finishAll()
        peer.feed([Frame.push(size: 9 << 10, kind: .unplacedPush), unplaced])
        #expect(peer.receipts.count == 1 && peer.machine.droppedMessageCount == 3)
    }

    // MARK: Credit

    @Test(arguments: roles) func moreThanTheCredit(_ role: SessionRole) {
        var options = SessionOptions()
        options.inboundCredit = 64 << 10
        // Each costs half of the credit.
        let (push, part) = (Frame.push(size: 32_704 - 10), Frame.part(.requestPart, size: 32_704 - 10))
        #expect(push.count == 32_704 && part.count == 32_704)
        #expect(violation(role, options, [Self.name, push, push]) == nil)
        #expect(violation(role, options, [Self.name, push, push, Frame.push()]) == .creditExceeded)
        // The last message may be larger than the rest of the credit. Each method has its own credit.
        #expect(violation(role, options, [Self.name, push, Frame.push(size: 1 << 20)]) == nil)
        #expect(violation(role, options, [Self.name, Frame.method(2, "b"), push, push, Frame.push(2)]) == nil)
        let request = [Self.name, Frame.request(hasParts: true)]
        #expect(violation(role, options, request + [part, part, push, push]) == nil)
        #expect(violation(role, options, request + [part, part, Frame.part(.requestPart)]) == .creditExceeded)
        // A message that is sent at most once uses no credit.
        let unplaced = [Frame.push(kind: .unplacedPush), Frame.part(.unplacedRequestPart)]
        #expect(violation(role, options, request + [part, part, push, push] + unplaced) == nil)

        let peer = MachineHostilePeer.opened(role, options)
        peer.request("x.Y/Z")
        let serial = UInt64(MachineHostilePeer.serial(of: peer.calls[0]))
        _ = peer.offered()
        let answer = Frame.part(.responsePart, serial, size: 32_704 - 10)
        peer.feed([answer, answer])
        #expect(peer.violation == nil)
        // The credit of consumed messages may be used again, whether or not the grant was sent yet.
        peer.finish(0)
        peer.feed(answer)
        #expect(peer.violation == nil)
        peer.feed(Frame.part(.responsePart, serial))
        #expect(peer.violation == .creditExceeded)
    }

    @Test(arguments: roles) func creditForNothing(_ role: SessionRole) {
        let (nothing, several) = ("Its credit is for nothing.", "Its credit is for several things.")
        #expect(violation(role, [Frame.of(.credit)]) == undecodable(nothing))
        #expect(violation(role, [Frame.credit(1, 0, 5)]) == undecodable(nothing))
        let two = Frame.of(.credit, Frame.number(1, 1), Frame.number(3, 1))
        #expect(violation(role, [two]) == undecodable(several))
    }

    @Test(arguments: roles) func creditThatIsIgnored(_ role: SessionRole) {
        var terms = Frame.terms
        terms.credit = 64 << 10
        let peer = MachineHostilePeer.opened(role, terms: terms)
        for number in [1, 2, UInt64(UInt32.max)] {
            for target in 1...3 as ClosedRange<UInt32> { peer.feed(Frame.credit(target, number, .max)) }
        }
        #expect(peer.events == [.opened(isResumed: false)])
        // A credit from before method 1 existed grants nothing.
        #expect(peer.push("a.B/C", size: 65_536) == .accepted(number: 0))
        let waits = peer.push("a.B/C")
        guard case .waits = waits else { Issue.record("\(waits)"); return }
        // Sums that are not higher than earlier ones.
        for sum in [0, 65_535, 65_536] as [UInt64] { peer.feed(Frame.credit(1, 1, sum)) }
        #expect(peer.machine.waitingCount == 1)
        peer.feed([Frame.credit(1, 1, 1 << 20), Frame.credit(1, 1, 0), Frame.credit(1, 1, 65_536)])
        #expect(peer.machine.waitingCount == 0 && peer.events.last == .accepted)
        #expect(peer.push("a.B/C") == .accepted(number: 0))
        peer.feed(Frame.credit(1, 1, .max))
        #expect(peer.violation == nil)
    }

    // MARK: Goodbyes

    @Test func goodbyesOfAServer() {
        for code in [0, 2, 7, 8, 99] as [UInt64] {
            let peer = withCall(.client)
            peer.forgetEvents()
            peer.feed(Frame.goodbye(code, pause: 5))
            #expect(peer.events == [.peerLeaving(pause: .milliseconds(5))])
            #expect(peer.machine.endReason == nil)
        }
        for code in [1, 3, 4, 5] as [UInt64] {
            let peer = withCall(.client)
            peer.forgetEvents()
            peer.feed(Frame.goodbye(code))
            #expect(peer.events == [.failed(.sessionLost), .ended])
            guard case .saidByPeer(let goodbye)? = peer.machine.endReason else { Issue.record("\(code)"); continue }
            #expect(goodbye.code?.rawValue == UInt32(code))
            #expect(peer.goodbyes().isEmpty && peer.events.last == .closed(.byOwner))
        }
        let peer = withCall(.client)
        peer.forgetEvents()
        peer.feed(Frame.goodbye(6))
        #expect(peer.events == [.sessionLost, .failed(.sessionLost), .accused])
        #expect(peer.goodbyes().isEmpty && peer.events.last == .closed(.inOrder))
    }

    @Test func goodbyesInPlaceOfAWelcome() {
        for code in 0...8 as ClosedRange<UInt64> {
            let peer = MachineHostilePeer.opened(.client)
            peer.cut()
            peer.connect()
            peer.forgetEvents()
            peer.feed(Frame.goodbye(code))
            switch code {
            case 1, 3, 4, 5: #expect(peer.events == [.ended])
            case 6: #expect(peer.events == [.sessionLost, .accused])
            default: #expect(peer.events == [.peerLeaving(pause: .zero)])
            }
            #expect(peer.goodbyes().isEmpty && peer.failure == nil)
        }
    }

    @Test func goodbyesOfAClient() {
        for code in [0, 2, 7, 8] as [UInt64] {
            let peer = withCall(.server)
            peer.forgetEvents()
            peer.feed(Frame.goodbye(code))
            #expect(peer.events == [.peerLeaving(pause: .zero)])
        }
        for code in [1, 6] as [UInt64] {
            let peer = withCall(.server)
            peer.forgetEvents()
            peer.feed(Frame.goodbye(code))
            #expect(peer.events == [.failed(.sessionLost), .ended])
            #expect(peer.goodbyes().isEmpty && peer.events.last == .closed(.inOrder))
        }
    }

    /// A pause is at most 365 days.
    @Test(arguments: roles) func longPauses(_ role: SessionRole) {
        let peer = MachineHostilePeer.opened(role)
        peer.feed(Frame.goodbye(2, pause: .max))
        #expect(peer.events.last == .peerLeaving(pause: .seconds(365 * 86_400)))
    }

    /// A server that can keep nothing more sends the client away. The frame breaks no rule, and has no place.
    @Test func framesThatCannotBeKept() {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed([Self.name, Frame.push()])
        _ = peer.offered()
        peer.machine.allowance.byteCount = peer.machine.keptByteCount + 100
        peer.feed([Frame.push(size: 200), Frame.push(99)])
        #expect(peer.violation == nil && peer.receipts.count == 1)
        #expect(peer.goodbyes() == [.draining])
        peer.cut()
        peer.machine.allowance = .unlimited
        peer.open(isResumed: true)
        peer.feed([Frame.push(size: 200)])
        peer.finishAll()
        #expect(peer.acknowledgement()?.ordinary == 3)
    }
}
