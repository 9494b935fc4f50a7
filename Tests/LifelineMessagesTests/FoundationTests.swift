import Foundation
import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import Testing

// The file in docs/migrating-from-swift-protobuf.md for programs that use Foundation.

// snippet.data-and-date
extension LifelineMessages.Message {
    func serializedData(partial: Bool = false) throws(MessageError) -> Data {
        Data(try serializedBytes(partial: partial))
    }

    func jsonUTF8Data(options: JSONEncodingOptions = JSONEncodingOptions()) throws(MessageError) -> Data {
        Data(try jsonUTF8Bytes(options: options))
    }
}

extension Google_Protobuf_Timestamp {
    init(date: Date) { self.init(timeIntervalSince1970: date.timeIntervalSince1970) }

    var date: Date { Date(timeIntervalSince1970: timeIntervalSince1970) }
}
// snippet.end

@Suite struct FoundationTests {
    @Test func messagesAreConverted() throws {
        let message = Sample_Chat_V1_ChatMessage.with { $0.text = "Grüezi" }
        #expect(try Sample_Chat_V1_ChatMessage(serializedBytes: message.serializedData()) == message)
        #expect(try Sample_Chat_V1_ChatMessage(jsonUTF8Bytes: message.jsonUTF8Data()) == message)
        let date = Date(timeIntervalSince1970: 1_800_000_000)
        #expect(Google_Protobuf_Timestamp(date: date).date == date)
    }
}
