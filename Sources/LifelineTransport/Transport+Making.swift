// For transports outside this module.
extension OpenedConnection {
    /// Puts a connection and its inbox together.
    package init(_ connection: any TransportConnection, inbox: Inbox) {
        self.init(connection: connection, inbox: inbox)
    }
}
