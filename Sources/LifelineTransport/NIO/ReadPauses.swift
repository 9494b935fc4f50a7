/// The reasons why a connection is not read.
struct ReadPauses: OptionSet {
    let rawValue: UInt8
    /// Too much waits for the receiver.
    static let receiver = ReadPauses(rawValue: 1)
    /// Too many replies wait for the peer to read them.
    static let replies = ReadPauses(rawValue: 2)
    /// Other connections have their turns first.
    static let turn = ReadPauses(rawValue: 4)
    static let all: ReadPauses = [.receiver, .replies, .turn]
}
