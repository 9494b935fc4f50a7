package import LifelineCore

/// The heads of the framing by fixed headers, and the numbers that urls and serials share.
///
/// A url is the number of what is asked for or told; a serial says which question an answer belongs to. All fields are
/// unsigned, of 32 bits, the most significant byte first. The client writes requests:
///
///      0        4        8        12
///     ├────────┼────────┼────────┼──────────
///     │ url    │ serial │ length │ content …        length bytes
///     └────────┴────────┴────────┴──────────
///
/// and the server writes responses, whatever it has to say:
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
/// Three rules keep a frame from being taken for another:
/// - Our requests never have their urls for serials. So to our client a serial that is the url always means a push,
///   even of a peer whose pushes have higher numbers. Other clients count through them all: to our server, what is over
///   0x400 is a request with any serial, and is answered with that.
/// - The url 1 is looked at first: the serial of a ping need not differ from those of requests.
/// - Only the client asks and only the server answers. A heartbeat in response form is never answered, so that two
///   peers cannot answer each other for ever. A client that pings with the serial 1 gets its pong. Which ping a pong
///   answers makes no difference to who asked: any byte that comes is the sign of life, and a pong late by one is no
///   worse.
package enum FixedHeader {
    /// The url of pings and their answers.
    package static let heartbeatURL: UInt32 = 1
    /// The numbers that notifications and pushes are sent with.
    package static let notifications: ClosedRange<UInt32> = 2...0x400
    /// The highest number of a notification.
    package static let lastNotification = notifications.upperBound
    /// What requests count through, again and again. 0xFFFFFFFF is never used.
    package static let serials: ClosedRange<UInt32> = 0x401...0xFFFF_FFFE

    /// The acknowledgement number of the ping with a number that `Heartbeat` gave: as the serials go, 0x401 for 1.
    package static func serial(ofPing number: UInt64) -> UInt32 {
        // 1 subtracted with wrap-around, for 0, which no ping has.
        serials.lowerBound + UInt32(truncatingIfNeeded: (number &- 1) % UInt64(serials.count))
    }
}

/// The head of a frame, without the length of the content behind it.
package protocol FixedHeaderFields: Sendable, Hashable {
    /// Bytes that the fields take.
    static var byteCount: Int { get }
    /// Reads the fields from the start of `bytes`, which has them all.
    init(_ bytes: UnsafeRawBufferPointer)
    /// Writes the fields to `destination`, which has room for them.
    func write(into destination: UnsafeMutableRawBufferPointer)
    /// Throws `invalidHead` when a peer would take the frame for another than what it is.
    func checkSendable() throws(FramingError)
}

extension FixedHeader {
    /// What a client sends.
    package struct Request: FixedHeaderFields {
        /// What is asked for.
        package var url: UInt32
        /// Which request this is.
        package var serial: UInt32

        /// Makes the head of a request; of a notification when the serial is the url.
        package init(url: UInt32, serial: UInt32) {
            self.url = url
            self.serial = serial
        }

        /// What a request means to the server.
        package enum Meaning: Equatable, Sendable {
            /// A question: answer it.
            case request
            /// A notification, which expects no answer.
            case notification
            /// A question for a sign of life: answer it.
            case ping
        }

        /// What it means to the server.
        package var meaning: Meaning {
            if url == heartbeatURL { return .ping }
            return serial == url && url <= lastNotification ? .notification : .request
        }
    }

    /// What a server sends.
    package struct Response: FixedHeaderFields {
        /// What was asked for, or what is told.
        package var url: UInt32
        /// How it went. What the values mean is the application's.
        package var status: UInt32
        /// Which request this answers; the url when it answers none.
        package var serial: UInt32

        /// Makes the head of a response; of a push when the serial is the url.
        package init(url: UInt32, status: UInt32 = 0, serial: UInt32) {
            self.url = url
            self.status = status
            self.serial = serial
        }

        /// What a response means to the client.
        package enum Meaning: Equatable, Sendable {
            /// The answer to the request with the response's serial, if there is one.
            case response
            /// Nobody asked for it.
            case push
            /// The answer to the ping with the response's serial, or a heartbeat nobody asked for. Not to be answered.
            case heartbeat
        }

        /// What it means to the client.
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
        // A response has the serial that the client chose, whatever that is; one over 0x400 may be the url.
        if serial == url, url == 0 { try FixedHeader.checkNotification(url) }
    }
}

extension FixedHeader {
    /// Throws `invalidHead` when a number is none of a notification, or of a push.
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
