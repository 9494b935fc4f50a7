package import LifelineCore

/// The heads of the framing with fixed headers, and the numbers that urls and serials share.
///
/// A url is the number of a subject; a serial identifies the request of an answer. All fields are unsigned numbers of
/// 32 bits, with the most significant byte first. The client writes requests:
///
///      0        4        8        12
///     ├────────┼────────┼────────┼──────────
///     │ url    │ serial │ length │ content …        length bytes
///     └────────┴────────┴────────┴──────────
///
/// and the server writes only responses:
///
///      0        4        8        12       16
///     ├────────┼────────┼────────┼────────┼──────────
///     │ url    │ status │ serial │ length │ content …
///     └────────┴────────┴────────┴────────┴──────────
///
/// | what is said | by | url | status | serial |
/// |---|---|---|---|---|
/// | request | client | any but 1 | | 0x401 to 0xFFFFFFFE, none that is in use, and not the url |
/// | its response | server | the request's | any | the request's |
/// | push | server | a notification's, 2 to 0x400 | any | the url |
/// | notification | client | a notification's, 2 to 0x400 | | the url |
/// | ping | client | 1 | | its acknowledgement number, as a request's serial |
/// | pong | server | 1 | any | the ping's |
/// | heartbeat nobody asked for | server | 1 | any | 1 |
///
/// So `GET 0x500` with 5 bytes, its answer, a push of number 7, and a ping with its pong are
///
///     00 00 05 00  00 00 04 01  00 00 00 05  68 65 6C 6C 6F
///     00 00 05 00  00 00 00 00  00 00 04 01  00 00 00 02  6F 6B
///     00 00 00 07  00 00 00 00  00 00 00 07  00 00 00 00
///     00 00 00 01  00 00 04 02  00 00 00 00
///     00 00 00 01  00 00 00 00  00 00 04 02  00 00 00 00
///
/// Three rules prevent a frame from being mistaken for another:
/// - Requests of Lifeline's client never have their url as the serial. So for this client a serial equal to the url
///   always means a push, even from a peer whose pushes have higher numbers. Other clients use all numbers: for
///   Lifeline's server, a url above 0x400 is a request with any serial, and is answered with that serial.
/// - The url 1 is checked first: the serial of a ping need not differ from those of requests.
/// - Only the client makes requests, and only the server answers. A heartbeat in response form is never answered, so
///   that two peers cannot answer each other for ever. A client that pings with the serial 1 gets its pong. It does not
///   matter which ping a pong answers: any received byte is a sign of life, and a pong for an earlier ping is as good.
package enum FixedHeader {
    /// The url of pings and their answers.
    package static let heartbeatURL: UInt32 = 1
    /// The numbers of notifications and pushes.
    package static let notifications: ClosedRange<UInt32> = 2...0x400
    /// The highest number of a notification.
    package static let lastNotification = notifications.upperBound
    /// The serials of requests, used in order, again and again. 0xFFFFFFFF is never used.
    package static let serials: ClosedRange<UInt32> = 0x401...0xFFFF_FFFE

    /// Returns the acknowledgement number for a ping's number of `Heartbeat`: in the order of serials, 0x401 for 1.
    package static func serial(ofPing number: UInt64) -> UInt32 {
        // Subtracts 1 with wrap-around, for 0, which no ping has.
        serials.lowerBound + UInt32(truncatingIfNeeded: (number &- 1) % UInt64(serials.count))
    }
}

/// The head of a frame, without the length of the content.
package protocol FixedHeaderFields: Sendable, Hashable {
    /// The number of bytes of the fields.
    static var byteCount: Int { get }
    /// Reads the fields from the start of `bytes`, which has them all.
    init(_ bytes: UnsafeRawBufferPointer)
    /// Writes the fields to `destination`, which has room for them.
    func write(into destination: UnsafeMutableRawBufferPointer)
    /// Throws `invalidHead` when a peer would mistake the frame for another kind.
    func checkSendable() throws(FramingError)
}

extension FixedHeader {
    /// The head of a client's frame.
    package struct Request: FixedHeaderFields {
        /// The subject.
        package var url: UInt32
        /// The serial of the request.
        package var serial: UInt32

        /// Makes the head of a request, or of a notification if the serial is the url.
        package init(url: UInt32, serial: UInt32) {
            self.url = url
            self.serial = serial
        }

        /// The meaning of a request for the server.
        package enum Meaning: Equatable, Sendable {
            /// A request: answer it.
            case request
            /// A notification, which expects no answer.
            case notification
            /// A request for a sign of life: answer it.
            case ping
        }

        /// The meaning for the server.
        package var meaning: Meaning {
            if url == heartbeatURL { return .ping }
            return serial == url && url <= lastNotification ? .notification : .request
        }
    }

    /// The head of a server's frame.
    package struct Response: FixedHeaderFields {
        /// The subject of the request, or of a push.
        package var url: UInt32
        /// The status. The application defines the values.
        package var status: UInt32
        /// The serial of the answered request; the url if there is none.
        package var serial: UInt32

        /// Makes the head of a response, or of a push if the serial is the url.
        package init(url: UInt32, status: UInt32 = 0, serial: UInt32) {
            self.url = url
            self.status = status
            self.serial = serial
        }

        /// The meaning of a response for the client.
        package enum Meaning: Equatable, Sendable {
            /// The answer to the request with the response's serial, if there is one.
            case response
            /// A message without a request.
            case push
            /// The answer to the ping with the response's serial, or a heartbeat without a ping. It must not be
            /// answered.
            case heartbeat
        }

        /// The meaning for the client.
        package var meaning: Meaning {
            if url == heartbeatURL { return .heartbeat }
            return serial == url ? .push : .response
        }
    }
}

extension FixedHeader.Request {
    package static var byteCount: Int { 8 }

    package init(_ bytes: UnsafeRawBufferPointer) {
        self.init(url: bytes.bigEndian(at: 0), serial: bytes.bigEndian(at: 4))
    }

    package func write(into destination: UnsafeMutableRawBufferPointer) {
        destination.storeBigEndian(url, at: 0)
        destination.storeBigEndian(serial, at: 4)
    }

    package func checkSendable() throws(FramingError) {
        switch meaning {
        case .notification: try FixedHeader.checkNotification(url)
        case .request where serial == url:
            throw .invalidHead(
                "The serial \(serial) is the request's url: its answer would be a push. Count on by one."
            )
        case .request, .ping:
            guard FixedHeader.serials.contains(serial) else {
                throw .invalidHead("The serial \(serial) is none of a request: those are \(FixedHeader.serials).")
            }
        }
    }
}

extension FixedHeader.Response {
    package static var byteCount: Int { 12 }

    package init(_ bytes: UnsafeRawBufferPointer) {
        self.init(url: bytes.bigEndian(at: 0), status: bytes.bigEndian(at: 4), serial: bytes.bigEndian(at: 8))
    }

    package func write(into destination: UnsafeMutableRawBufferPointer) {
        destination.storeBigEndian(url, at: 0)
        destination.storeBigEndian(status, at: 4)
        destination.storeBigEndian(serial, at: 8)
    }

    package func checkSendable() throws(FramingError) {
        // A response has the serial that the client chose, which may be any number; above 0x400 it may equal the url.
        if serial == url, url == 0 { try FixedHeader.checkNotification(url) }
    }
}

extension FixedHeader {
    /// Throws `invalidHead` when a number is not valid for notifications and pushes.
    package static func checkNotification(_ number: UInt32) throws(FramingError) {
        guard notifications.contains(number) else {
            throw .invalidHead(
                "\(number) is no number of a notification or a push. Choose one from 2 to 1,024; 1 is the heartbeat's."
            )
        }
    }
}

extension UnsafeRawBufferPointer {
    func bigEndian(at offset: Int) -> UInt32 {
        UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}

extension UnsafeMutableRawBufferPointer {
    func storeBigEndian(_ value: UInt32, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
    }
}
