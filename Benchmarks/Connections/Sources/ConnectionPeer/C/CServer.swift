internal import CEpollPeer

/// The server in C.
func runCServer(_ mode: ServerMode) throws {
    var port: UInt16 = 0
    let listener = epoll_server_listen(&port)
    guard listener >= 0 else { throw SystemError() }
    say("port \(port)")
    _ = epoll_server_run(listener, mode == .echo)
    throw SystemError()
}
