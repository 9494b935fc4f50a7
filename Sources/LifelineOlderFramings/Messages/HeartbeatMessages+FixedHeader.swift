public import Lifeline
internal import LifelineCore

extension HeartbeatMessages where Received == FixedHeaderResponse, Sent == FixedHeaderRequest {
    /// The heartbeat of a client: pings with the url 1 and an acknowledgement number as the serial, which the server's
    /// answer carries. Heartbeats that the server sends by itself are also removed, and not answered.
    public static var fixedHeader: HeartbeatMessages {
        HeartbeatMessages(
            ping: { number in
                FixedHeaderRequest(url: FixedHeader.heartbeatURL, serial: FixedHeader.serial(ofPing: number))
            },
            answer: { _ in nil },
            isAnswer: { $0.head.meaning == .heartbeat }
        )
    }
}

extension HeartbeatMessages where Received == FixedHeaderRequest, Sent == FixedHeaderResponse {
    /// The heartbeat of a server: it answers pings. It sends no pings, because clients do not answer a server.
    /// `idleTimeout` bounds how long clients may be silent, and the kernel's keepalive watches them.
    public static var fixedHeader: HeartbeatMessages {
        HeartbeatMessages(
            ping: nil,
            answer: { $0.head.meaning == .ping ? $0.response() : nil },
            isAnswer: { _ in false }
        )
    }
}
