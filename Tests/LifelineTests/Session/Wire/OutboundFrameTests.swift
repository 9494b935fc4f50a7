import Lifeline
import LifelineCore
import Testing

@Suite struct OutboundFrameTests {
    @Test func theBytesAreThoseOfTheProtocol() {
        #expect(frameBytes(.push, method: 7, payload: [1, 2]) == [8, 0x42, 6, 0x08, 7, 0x1A, 2, 1, 2])
        #expect(frameBytes(.unplacedPush, method: 7) == [5, 0x82, 0x03, 2, 0x08, 7])
        #expect(frameBytes(.request, serial: 3, method: 4) == [6, 0x4A, 4, 0x10, 3, 0x18, 4])
        let request = frameBytes(.request, serial: 3, method: 4, timeout: 5, hasParts: true, fields: [0x2A, 0])
        #expect(request == [16, 0x4A, 14, 0x08, 0x85, 0x80, 0x80, 0x80, 0, 0x10, 3, 0x18, 4, 0x20, 1, 0x2A, 0])
        #expect(frameBytes(.request, serial: 3, payload: [9]) == [7, 0x4A, 5, 0x10, 3, 0x32, 1, 9])
        #expect(frameBytes(.requestPart, serial: 300, payload: [9]) == [8, 0x52, 6, 0x08, 0xAC, 2, 0x12, 1, 9])
        #expect(frameBytes(.requestEnd, serial: 1) == [4, 0x5A, 2, 0x08, 1])
        #expect(frameBytes(.responsePart, serial: 1, payload: [9]) == [7, 0x62, 5, 0x08, 1, 0x12, 1, 9])
        #expect(frameBytes(.response, serial: 1, fields: [0x10, 5]) == [6, 0x6A, 4, 0x08, 1, 0x10, 5])
        #expect(frameBytes(.method, method: 1, payload: [0x61]) == [7, 0x72, 5, 0x08, 1, 0x12, 1, 0x61])
        #expect(frameBytes(.blank) == [2, 0x7A, 0])
        #expect(frameBytes(.urgentResponse, serial: 1, payload: [9]) == [8, 0x82, 0x02, 5, 0x08, 1, 0x32, 1, 9])
        #expect(frameBytes(.cancel, serial: 1) == [5, 0x8A, 0x02, 2, 0x08, 1])
        #expect(frameBytes(.unplacedRequestPart, serial: 1) == [5, 0x8A, 0x03, 2, 0x08, 1])
        #expect(frameBytes(.unplacedResponsePart, serial: 1) == [5, 0x92, 0x03, 2, 0x08, 1])
    }

    @Test func framesOfEveryLengthAreRead() throws {
        for count in Array(0...1) + Array(110...130) + Array(16_360...16_390) + [2_200_000] {
            let payload = [UInt8](repeating: 7, count: count)
            let frame = frameBytes(.request, serial: .max, method: 1, timeout: 9, payload: payload)
            let bytes = try frameBody(.request, frame)
            try withMessage(.request, bytes) { message in
                #expect(message.serial == .max && message.method == 1 && message.timeoutMilliseconds == 9)
                #expect(Array(message.payload) == payload && !message.hasParts)
            }
        }
    }

    @Test func theTimeoutIsChangedInPlace() throws {
        for payloadCount in [0, 100, 300, 20_000] {
            let payload = [UInt8](repeating: 7, count: payloadCount)
            let frame = frameBytes(.request, serial: 2, method: 1, timeout: 0, payload: payload)
            for milliseconds in [0, 1, 127, 128, 1_000_000, UInt32.max] {
                var changed = frame
                changed.withUnsafeMutableBytes { OutboundFrame.patchTimeout(in: $0, milliseconds: milliseconds) }
                let expected = frameBytes(.request, serial: 2, method: 1, timeout: milliseconds, payload: payload)
                #expect(changed == expected)
                try withMessage(.request, try frameBody(.request, changed)) {
                    #expect($0.timeoutMilliseconds == UInt64(milliseconds) && Array($0.payload) == payload)
                }
            }
        }
    }

    @Test func aTimeoutThatWasNotWrittenCannotBeChanged() async {
        await #expect(processExitsWith: .failure) {
            var frame: [UInt8] = [6, 0x4A, 4, 0x10, 3, 0x18, 4]
            frame.withUnsafeMutableBytes { OutboundFrame.patchTimeout(in: $0, milliseconds: 1) }
        }
        await #expect(processExitsWith: .failure) {
            var frame: [UInt8] = [8, 0x42, 6, 0x08, 0x85, 0x80, 0x80, 0x80, 0]
            frame.withUnsafeMutableBytes { OutboundFrame.patchTimeout(in: $0, milliseconds: 1) }
        }
    }
}
