/// A way in which a peer broke the rules of the session protocol.
package enum SessionViolation: Error, Hashable, Sendable {
    /// It acknowledged a frame that was never sent.
    case unknownAcknowledgement(SessionPlace)
    /// When it came back, it reported less progress than before.
    case acknowledgementWentBack(SessionPlace)
    /// It sent more than the window of a lane without an acknowledgement.
    case windowExceeded(SessionLane)
    /// It sent this before, or instead of, opening the session.
    case notOpened
    /// It opened the session twice on one connection.
    case openedTwice
    /// It chose a version that was not offered.
    case version(UInt32)
    /// It resumed another session than the one that was named.
    case otherSession
    /// It sent a frame that only the other side may send: a hello from a server, or a welcome from a client.
    case unexpectedFrame
    /// It used the serial of a request that has no response yet.
    case serialInUse(UInt32)
    /// It sent a request with serial 0, which stands for none.
    case noSerial
    /// Its welcome has a session's id, or a token, of this length and not of 16 bytes.
    case malformedCredentials(byteCount: Int)
    /// Its opening has no window, or one that is too small for a refusal.
    case emptyWindow
    /// Its opening has less credit than it must.
    case smallCredit
    /// Its frame is too long or malformed. The text has the details.
    case undecodable(String)
    /// Its push or response has more metadata, or more details, than a message may have.
    case tooManyEntries
    /// It has more durable messages under way, or leaves out more of their numbers, than it may.
    case tooManyDurable
    /// The number of a durable message has more than 63 bits.
    case durableNumber
    /// It sent a call in a push that is not durable, or it is a server that sent a call, or a client that sent a reply.
    case callOrReply
    /// It has not acknowledged thousands of urgent frames, which are processed on arrival.
    case urgentFramesUnacknowledged
    /// It only takes frames up to this length, which is less than 4 KiB.
    case frameLimit(Int)
    /// It sent more of a method or a stream than its credit allows.
    case creditExceeded
    /// Its frame uses a method number that it has not assigned.
    case unknownMethod(UInt32)
    /// It assigned this number to a method, which is not the next one.
    case methodNumber(UInt32)
    /// It assigned numbers to more methods than it may.
    case tooManyMethods
    /// It sent a part of a request, or the end, after the end, or for a request without parts.
    case partsAfterEnd
    /// Its request has a payload although its parts follow.
    case payloadWithParts

    /// What happened, for logs and the peer.
    package var message: String {
        switch self {
        case .unknownAcknowledgement(let place):
            "The \(place.lane) frame \(place.sequence) was acknowledged and never sent."
        case .acknowledgementWentBack(let place):
            "The acknowledgement of \(place.lane) frames went back to \(place.sequence)."
        case .windowExceeded(let lane): "More \(lane) frames came than the window allows."
        case .notOpened: "A frame came before the session was opened."
        case .openedTwice: "The session was opened twice on one connection."
        case .version(let version): "Version \(version) of the session protocol was chosen, which was not offered."
        case .otherSession: "Another session went on than the one that was named."
        case .unexpectedFrame: "A frame came that only the other side may send."
        case .serialInUse(let serial): "A request came with serial \(serial), which another one has."
        case .noSerial: "A request came with serial 0."
        case .malformedCredentials(let count): "The name of a session or its token has \(count) bytes, not 16."
        case .emptyWindow: "The window takes no frame, or less than \(SessionWindow.smallestByteCount) bytes."
        case .smallCredit: "The credit is less than \(SessionTerms.smallestCredit >> 10) KiB."
        case .undecodable(let reason): "A frame cannot be taken: \(reason)"
        case .tooManyEntries: "A message has more metadata or details than one may have."
        case .tooManyDurable: "More durable messages are under way, or more of their numbers left out, than may be."
        case .callOrReply: "A push asked for a reply and was not durable, or a server asked, or a client replied."
        case .durableNumber: "The number of a durable message has more than 63 bits."
        case .frameLimit(let count): "The longest frame that it takes has \(count) bytes, which is less than 4 KiB."
        case .urgentFramesUnacknowledged: "Thousands of urgent frames were not acknowledged."
        case .creditExceeded: "More of a method or a stream came than its credit allows."
        case .unknownMethod(let number): "A frame names method \(number), which has no number yet."
        case .methodNumber(let number): "A method was given number \(number), which is not the next one."
        case .tooManyMethods: "More methods were given numbers than one side may have."
        case .partsAfterEnd: "A part or an end came for a request that has no more parts."
        case .payloadWithParts: "A request has both a payload and parts."
        }
    }
}
