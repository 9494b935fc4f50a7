/// Asks a SOCKS5 proxy for a connection (RFC 1928), with user and password if there are some (RFC 1929).
struct SOCKS5Handshake: ProxyHandshake {
    private enum State {
        /// Can go to: awaitingVerdict, awaitingReply.
        case awaitingMethod
        /// The verdict on user and password. Can go to: awaitingReply.
        case awaitingVerdict
        /// Can go to: established.
        case awaitingReply
        /// Can go to: no other state.
        case established
    }

    private static let version: UInt8 = 5
    private static let noAuthentication: UInt8 = 0
    private static let userAndPassword: UInt8 = 2

    let greeting: [UInt8]
    private let route: ProxyRoute
    private let request: [UInt8]
    private var state = State.awaitingMethod
    /// The received part of the awaited message: 262 bytes at most.
    private var message: [UInt8] = []

    init(route: ProxyRoute) throws(ConnectionError) {
        let target = try route.target()
        self.route = route
        // CONNECT, a reserved byte, then the type of address.
        var request = [SOCKS5Handshake.version, 1, 0]
        switch target.host {
        case .address(let address): request += [address.version == .v4 ? 1 : 4] + address.bytes
        case .name(let name): request += [3, UInt8(name.utf8.count)] + Array(name.utf8)
        }
        self.request = request + [UInt8(target.port >> 8), UInt8(target.port & 0xFF)]
        // A proxy that needs no credentials may do without them.
        let methods =
            route.proxy.credentials == nil
            ? [SOCKS5Handshake.noAuthentication]
            : [SOCKS5Handshake.noAuthentication, SOCKS5Handshake.userAndPassword]
        greeting = [SOCKS5Handshake.version, UInt8(methods.count)] + methods
    }

    mutating func receive(_ byte: UInt8) throws(ConnectionError) -> ProxyHandshakeAction {
        message.append(byte)
        switch state {
        case .awaitingMethod:
            guard message[0] == SOCKS5Handshake.version else { throw route.violation("does not speak SOCKS5") }
            guard message.count == 2 else { return .none }
            return try methodChosen(byte)
        case .awaitingVerdict:
            // Some servers send SOCKS's version in place of that of RFC 1929, which is 1.
            guard [1, SOCKS5Handshake.version].contains(message[0]) else {
                throw route.violation("answered user and password with what is no answer")
            }
            guard message.count == 2 else { return .none }
            guard byte == 0 else { throw route.authenticationRequired("did not accept the credentials") }
            return sendRequest()
        case .awaitingReply:
            return try receivedOfReply()
        case .established:
            preconditionFailure("The handshake is over.")
        }
    }

    private mutating func methodChosen(_ method: UInt8) throws(ConnectionError) -> ProxyHandshakeAction {
        switch (method, route.proxy.credentials) {
        case (SOCKS5Handshake.noAuthentication, _):
            return sendRequest()
        case (SOCKS5Handshake.userAndPassword, let credentials?):
            message.removeAll()
            state = .awaitingVerdict
            // Their lengths were checked when the proxy was configured.
            let parts = [credentials.user, credentials.password].map { [UInt8($0.utf8.count)] + Array($0.utf8) }
            return .send([1] + parts[0] + parts[1])
        case (0xFF, nil):
            throw route.authenticationRequired("wants credentials")
        case (0xFF, _?):
            throw route.authenticationRequired("takes no credentials of the form user and password")
        default:
            throw route.violation("chose a way to authenticate that it was not offered")
        }
    }

    private mutating func sendRequest() -> ProxyHandshakeAction {
        message.removeAll()
        state = .awaitingReply
        return .send(request)
    }

    /// Version, reply, a reserved byte, then the address that the proxy connected from, which is not used here.
    private mutating func receivedOfReply() throws(ConnectionError) -> ProxyHandshakeAction {
        guard message[0] == SOCKS5Handshake.version else { throw route.violation("broke SOCKS5's rules for a reply") }
        if message.count == 2, message[1] != 0 { throw refusal(message[1]) }
        guard message.count >= 5 else { return .none }
        let addressLength: Int
        switch message[3] {
        case 1: addressLength = 4
        case 3: addressLength = 1 + Int(message[4])
        case 4: addressLength = 16
        default: throw route.violation("broke SOCKS5's rules for a reply")
        }
        guard message.count == 4 + addressLength + 2 else { return .none }
        state = .established
        return .established
    }

    private func refusal(_ code: UInt8) -> ConnectionError {
        let (words, isTransient): (String, Bool) =
            switch code {
            case 1: ("general SOCKS server failure", true)
            case 2: ("connection not allowed by ruleset", false)
            case 3: ("Network unreachable", true)
            case 4: ("Host unreachable", true)
            case 5: ("Connection refused", true)
            case 6: ("TTL expired", true)
            case 7: ("Command not supported", false)
            case 8: ("Address type not supported", false)
            // Such as Tor's codes, most of which are transient.
            default: ("unassigned", true)
            }
        return route.notConnected(
            ProxyAnswer(proxyProtocol: .socks5, code: Int(code), words: words),
            isTransient: isTransient
        )
    }
}
