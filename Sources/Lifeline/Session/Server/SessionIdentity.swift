/// The identity of a client, as `SessionServerConfiguration.authenticate` returned it.
public struct SessionIdentity: Sendable, Hashable {
    /// The server's name for the client: the id of a user, for example.
    public var subject: String
    /// Further properties: roles, for example.
    public var attributes: [String: String]
    /// The name by which the session is found (`SessionServer.session(named:)`); empty for none.
    public var sessionName: String

    /// Makes an identity.
    ///
    /// - Parameters:
    ///   - attributes: default: empty.
    ///   - sessionName: default: the subject. If several sessions have one name, the newest is found.
    public init(_ subject: String, attributes: [String: String] = [:], sessionName: String? = nil) {
        self.subject = subject
        self.attributes = attributes
        self.sessionName = sessionName ?? subject
    }
}
