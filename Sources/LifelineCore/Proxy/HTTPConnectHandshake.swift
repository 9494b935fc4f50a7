/// Asks an HTTP proxy for a tunnel (RFC 9110, section 9.3.6).
struct HTTPConnectHandshake: ProxyHandshake {
    /// The longest head of an answer in bytes, including interim answers: the limit that HTTP servers usually have for
    /// a client's head.
    static let maximumHeadLength = 8 << 10

    let greeting: [UInt8]
    private let route: ProxyRoute
    /// The incomplete line.
    private var line: [UInt8] = []
    private var headLength = 0
    /// Nil before the answer's first line.
    private var status: (code: Int, words: String)?
    /// The authentication schemes that the proxy offers.
    private var schemes: [String] = []

    init(route: ProxyRoute) throws(ConnectionError) {
        // Checks the target, so that it cannot add lines to the request.
        _ = try route.target()
        self.route = route
        let authority = route.endpoint.address.authority
        var head = "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n"
        if let credentials = route.proxy.credentials {
            let pair = Base64.encode("\(credentials.user):\(credentials.password)".utf8)
            head += "Proxy-Authorization: Basic \(pair)\r\n"
        }
        greeting = Array("\(head)\r\n".utf8)
    }

    mutating func receive(_ byte: UInt8) throws(ConnectionError) -> ProxyHandshakeAction {
        headLength += 1
        guard headLength <= HTTPConnectHandshake.maximumHeadLength else {
            throw route.violation("sent more than \(HTTPConnectHandshake.maximumHeadLength) bytes of an answer's head")
        }
        let isAfterCR = line.last == UInt8(ascii: "\r")
        guard isAfterCR == (byte == UInt8(ascii: "\n")), byte >= 0x20 || [0x09, 0x0A, 0x0D].contains(byte), byte != 0x7F
        else {
            throw route.violation("sent bytes that an HTTP answer's head does not have")
        }
        line.append(byte)
        guard isAfterCR else { return .none }
        let text = line.dropLast(2)
        defer { line.removeAll(keepingCapacity: true) }
        guard let status else {
            status = try parseStatus(text)
            return .none
        }
        if !text.isEmpty {
            try parseField(text)
            return .none
        }
        return try finish(status.code, status.words)
    }

    /// `HTTP/1.1 200 Connection established`. The reason may be missing, with its space or without.
    private func parseStatus(_ line: ArraySlice<UInt8>) throws(ConnectionError) -> (code: Int, words: String) {
        let bytes = Array(line)
        let isDigit: (UInt8) -> Bool = { (0x30...0x39).contains($0) }
        guard bytes.count >= 12, bytes.starts(with: "HTTP/1.".utf8), isDigit(bytes[7]), bytes[8] == 0x20,
            bytes[9...11].allSatisfy(isDigit), bytes[9] != 0x30, bytes.count == 12 || bytes[12] == 0x20
        else {
            throw route.violation("did not answer as HTTP/1 servers do")
        }
        let code = bytes[9...11].reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return (code, String(escaping: bytes.dropFirst(13), limit: 200))
    }

    private mutating func parseField(_ line: ArraySlice<UInt8>) throws(ConnectionError) {
        // White space before the colon, and continuation lines, are not allowed (RFC 9112, section 5).
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
            line[..<colon].allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw route.violation("sent a header line that has no name")
        }
        let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
        guard name == "proxy-authenticate" else { return }
        // For the message only. Basic is always kept, because the message depends on it.
        for scheme in authenticationSchemes(in: line[colon...].dropFirst()) {
            if schemes.count < 8 || scheme.lowercased() == "basic" { schemes.append(scheme) }
        }
    }

    private mutating func finish(_ code: Int, _ words: String) throws(ConnectionError) -> ProxyHandshakeAction {
        let answer = ProxyAnswer(proxyProtocol: .http, code: code, words: words)
        switch code {
        case 101:
            throw route.violation("answered by switching to another protocol")
        case 100..<200:
            // The final answer follows.
            status = nil
            return .none
        case 200..<300:
            // There is no body, whatever the header says.
            return .established
        case 401, 407:
            // The standard code is 407; tinyproxy answers wrong credentials with 401.
            throw authenticationRequired(answer)
        default:
            throw route.notConnected(answer, isTransient: HTTPConnectHandshake.isTransient(code))
        }
    }

    /// Returns whether a later attempt may succeed: the proxy is overloaded, or could not reach the endpoint. (Then
    /// tinyproxy answers 500, squid 503.)
    private static func isTransient(_ code: Int) -> Bool {
        switch code {
        case 501, 505: false
        case 408, 425, 429, 500..<600: true
        default: false
        }
    }

    private func authenticationRequired(_ answer: ProxyAnswer) -> ConnectionError {
        if !schemes.isEmpty, !schemes.contains(where: { $0.lowercased() == "basic" }) {
            return ConnectionError(
                code: .proxyAuthenticationRequired,
                message:
                    "The proxy \(route.proxy) accepts credentials only by \(schemes.joined(separator: ", ")); Lifeline "
                    + "has Basic. Use a proxy that takes it, or a local one that speaks with this one.",
                cause: answer
            )
        }
        let detail = route.proxy.credentials == nil ? "wants credentials" : "did not accept the credentials"
        return route.authenticationRequired(detail, cause: answer)
    }
}

/// The schemes of the challenges in a header field's value (RFC 9110, section 11.6.1). Commas separate challenges, and
/// also the parameters of a challenge: `Negotiate, Digest realm="a, b", nonce=c, Basic realm=d`.
private func authenticationSchemes(in value: ArraySlice<UInt8>) -> [String] {
    let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
    var schemes: [String] = []
    for element in elements(of: value) {
        let text = element.drop(while: isBlank)
        let token = text.prefix { !isBlank($0) && $0 != UInt8(ascii: "=") }
        let isParameter = text.dropFirst(token.count).drop(while: isBlank).first == UInt8(ascii: "=")
        if !token.isEmpty, !isParameter { schemes.append(String(escaping: token, limit: 20)) }
    }
    return schemes
}

/// Returns a list's elements. A comma inside a quoted string does not separate elements; a backslash there quotes the
/// next byte.
private func elements(of list: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    var elements: [ArraySlice<UInt8>] = []
    var start = list.startIndex
    var (isQuoted, isEscaped) = (false, false)
    for (index, byte) in zip(list.indices, list) {
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\"") {
            isQuoted.toggle()
        } else if isQuoted {
            isEscaped = byte == UInt8(ascii: "\\")
        } else if byte == UInt8(ascii: ",") {
            elements.append(list[start..<index])
            start = index + 1
        }
    }
    return elements + [list[start...]]
}
