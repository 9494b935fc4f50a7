import LifelineCore
import Testing

@testable import Lifeline

@Suite struct SessionValuesTests {
    @Test func idsStandOnTheWireAsTheyAreRead() throws {
        let bytes = [UInt8](0x10...0x1F)
        let id = try #require(SessionID(bytes))
        #expect(id.bytes == bytes && id == SessionID(0x1011_1213_1415_1617, 0x1819_1A1B_1C1D_1E1F))
        #expect("\(id)" == "101112131415161718191a1b1c1d1e1f" && "\(SessionID(0, 10))".hasSuffix("000a"))
        #expect(SessionID(bytes.dropLast()) == nil && SessionID(bytes + [0]) == nil && SessionToken([]) == nil)
        #expect(Set([id, id, SessionID(1, 2), SessionID(2, 1)]).count == 3)
        // Every bit counts.
        for bit in 0..<64 {
            #expect(SessionID(0, 0) != SessionID(1 << bit, 0) && SessionID(0, 0) != SessionID(0, 1 << bit))
            #expect(SessionToken(0, 0) != SessionToken(1 << bit, 0) && SessionToken(0, 0) != SessionToken(0, 1 << bit))
        }
    }

    @Test func tokensDoNotShow() throws {
        let token = try #require(SessionToken([UInt8](0x10...0x1F)))
        let credentials = SessionCredentials(id: SessionID(1, 2), token: token)
        var dumped = ""
        dump(ClientOpening.test(credentials), to: &dumped)
        for text in [
            "\(token)", String(reflecting: token), "\(credentials)", "\(ClientOpening.test(credentials))", dumped,
        ] {
            // Hexadecimal and decimal.
            #expect(!text.contains("1011") && !text.contains("\(0x1011_1213_1415_1617)"))
        }
        #expect(token.bytes == [UInt8](0x10...0x1F))
    }

    @Test func versionsMeetAtTheHighest() {
        func common(_ minimum: UInt32, _ maximum: UInt32) -> UInt32? {
            var hello = ClientOpening.test()
            (hello.minimumVersion, hello.maximumVersion) = (minimum, maximum)
            return hello.commonVersion
        }
        #expect(common(1, 1) == 1 && common(0, .max) == 1 && common(1, 7) == 1)
        #expect(common(2, 3) == nil && common(0, 0) == nil && common(3, 1) == nil && common(.max, 0) == nil)
    }

    @Test func timeoutsAreNeverWithoutLimit() {
        let now = MonotonicTime.ms(5)
        #expect(MonotonicTime.ms(7).timeoutMilliseconds(now: now) == 2)
        #expect((MonotonicTime.ms(7) + .nanoseconds(1)).timeoutMilliseconds(now: now) == 3)
        #expect((now + .nanoseconds(1)).timeoutMilliseconds(now: now) == 1)
        #expect(now.timeoutMilliseconds(now: now) == 1 && MonotonicTime.ms(0).timeoutMilliseconds(now: now) == 1)
        let longest = MonotonicTime(nanoseconds: .max).timeoutMilliseconds(now: MonotonicTime(nanoseconds: .min))
        #expect(longest == UInt64(Int64.max) / 1_000_000 + 1)
    }

    @Test func windowsTakeWhatFits() {
        let window = SessionWindow(frameCount: 2, byteCount: 10)
        #expect(window.takes(10, besides: SessionSize()) && !window.takes(11, besides: SessionSize()))
        #expect(window.takes(4, besides: SessionSize(frameCount: 1, byteCount: 6)))
        #expect(!window.takes(5, besides: SessionSize(frameCount: 1, byteCount: 6)))
        #expect(!window.takes(0, besides: SessionSize(frameCount: 1, byteCount: 11)))
        #expect(!window.takes(0, besides: SessionSize(frameCount: 2, byteCount: 0)))
        #expect(SessionWindow(frameCount: -1, byteCount: -1) == SessionWindow(frameCount: 0, byteCount: 0))
        #expect(!SessionWindow(frameCount: 0, byteCount: .max).takes(0, besides: SessionSize()))
        #expect(
            SessionWindow(frameCount: .max, byteCount: .max).takes(
                .max,
                besides: SessionSize(frameCount: 1, byteCount: 0)
            )
        )
    }

    @Test func pausesAreBounded() {
        #expect(SessionGoodbye(.full, pause: .seconds(-1)).pause == .zero)
        #expect(SessionGoodbye(.full, pause: .seconds(Int64.max)).pause == .longest)
        #expect(SessionGoodbye.Code.allCases.map(\.rawValue) == [1, 2, 3, 4, 5, 6, 7])
    }
}
