/// Who a client is, as `SessionServerConfiguration.authenticate` found out.
public struct SessionIdentity: Sendable, Hashable {
    /// What the server calls it: the id of a user, for example.
    public var subject: String
    /// What else is known of it: roles, for example.
    public var attributes: [String: String]
    /// By which name its session is found (`SessionServer.session(named:)`); empty: by none.
    public var sessionName: String

    /// Makes an identity.
    ///
    /// - Parameters:
    ///   - attributes: default: nothing.
    ///   - sessionName: default: the subject. Of several sessions with one name the newest is found.
    public init(_ subject: String, attributes: [String: String] = [:], sessionName: String? = nil) {
        self.subject = subject
        self.attributes = attributes
        self.sessionName = sessionName ?? subject
    }
}
