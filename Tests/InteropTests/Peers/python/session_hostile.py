"""A client or a server that breaks one rule of sessions, and prints what comes of that: see ../README.md."""

import socket
import sys
from collections import Counter

from messages import ChatMessage
from session_messages import CLOSED, REPLACED, delimited, parse
from session_rules import (
    FRAMES, OPENINGS, RESUMPTIONS, RETURNS, TOLERATED, WELCOMES, Raw, acknowledgement, hello, method, of_kind, request,
    welcome, without_terms,
)

SECONDS = 60
# The time within which a client has to reconnect.
RETURN_SECONDS = 10


class Connection:
    def __init__(self, connected):
        self.socket = connected
        self.stream = connected.makefile("rb")
        # Frames with a place, by lane.
        self.sent, self.received = Counter(), Counter()
        self.acknowledged = 0
        self.told = dict(ordinary=0, urgent=0)
        # The contents of the other side's opening.
        self.terms = None

    @staticmethod
    def to(port):
        return Connection(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))

    def send(self, *frames):
        data = b""
        for frame in frames:
            frame = frame if isinstance(frame, bytes) else frame.SerializeToString()
            self.count(frame)
            data += frame if isinstance(frame, Raw) else delimited(frame)
        try:
            self.socket.sendall(data)
        except ConnectionError:
            pass  # The goodbye may have come already.

    def count(self, frame):
        try:
            sent = parse(frame)
        except Exception:
            return
        self.sent["ordinary"] += sent.is_ordinary
        self.sent["urgent"] += sent.is_urgent

    def send_in_window(self, frame):
        while self.sent["ordinary"] - self.acknowledged >= self.terms.window_frames:
            self.receive_or_fail()
        self.send(frame)

    def wait_until_acknowledged(self):
        while self.acknowledged < self.sent["ordinary"]:
            self.receive_or_fail()

    def receive_or_fail(self):
        received = self.receive()
        if not received or received.kind == "goodbye":
            raise SystemExit(f"the connection ended too early: {received and received.message}")

    def receive(self):
        """The next frame; None when the connection has ended."""
        try:
            length = shift = 0
            while True:
                byte = self.stream.read(1)
                if not byte:
                    return None
                length |= (byte[0] & 0x7F) << shift
                shift += 7
                if byte[0] < 0x80:
                    break
            data = self.stream.read(length)
        except ConnectionError:
            return None
        if len(data) < length:
            return None
        received = parse(data)
        self.received["ordinary"] += received.is_ordinary
        self.received["urgent"] += received.is_urgent
        if received.kind == "acknowledgement":
            self.acknowledged = max(self.acknowledged, received.message.ordinary)
        return received

    def wait_for(self, *kinds):
        """The next frame of one of the kinds; None when there is none."""
        while received := self.receive():
            if received.kind in kinds:
                return received
        return None

    def open(self, frame):
        """Begins a session, or goes on with one."""
        self.send(frame)
        received = self.wait_for("welcome", "goodbye")
        if not received or received.kind == "goodbye":
            raise SystemExit(f"not let in: {received and received.message}")
        self.terms = received.message.terms
        return received.message

    def is_alive(self):
        """Whether the other side has read all that was sent, and answers."""
        self.send(of_kind("ping", number=77))
        received = self.wait_for("pong", "goodbye")
        return bool(received) and received.kind == "pong"

    def close(self):
        self.stream.close()
        self.socket.close()


def main():
    if sys.argv[1] == "server":
        serve(sys.argv[2])
    elif sys.argv[1] == "rules":
        print_rules()
    else:
        be_client(int(sys.argv[1]), sys.argv[2])


def print_rules():
    for name, rules in (
        ("opening", OPENINGS), ("session", FRAMES), ("tolerated", TOLERATED), ("resumption", RESUMPTIONS),
        ("welcome", WELCOMES), ("return", RETURNS),
    ):
        for rule in rules:
            print(name, rule)


# A client that breaks a rule


def be_client(port, rule):
    connection = Connection.to(port)
    if rule in OPENINGS:
        connection.send(*OPENINGS[rule]())
        tell(connection)
    elif rule in FRAMES:
        session = connection.open(hello())
        connection.send(*FRAMES[rule](connection))
        tell(connection)
        tell_whether_it_lives(port, session, 2, urgent=0)
    elif rule in TOLERATED:
        session = connection.open(hello())
        connection.send(*TOLERATED[rule](connection))
        print("the connection lives" if connection.is_alive() else "the connection is lost")
        sent = connection.sent["ordinary"]
        connection.close()
        tell_whether_it_lives(port, session, 2, sent, urgent=0)
    else:
        resume(port, rule, connection)


def resume(port, rule, connection):
    acknowledged, earlier, progress = RESUMPTIONS[rule]
    session = connection.open(hello())
    connection.send(method(1, "Start"), request(payload=ChatMessage(id="1").SerializeToString()))
    while connection.received != dict(ordinary=2, urgent=1):
        connection.receive_or_fail()
    connection.send(acknowledgement(**acknowledged))
    attempt = 1
    for told in earlier:
        lose(connection)
        attempt += 1
        connection = Connection.to(port)
        connection.open(hello(attempt, session, **told))
    lose(connection)
    connection = Connection.to(port)
    frame = hello(attempt + (rule != "attempt-again"), session, **progress)
    if rule == "resuming-without-terms":
        frame = without_terms(frame)
    connection.send(frame)
    tell(connection)
    tell_whether_it_lives(port, session, attempt + 2, processed=2, received=2, urgent=1)


def lose(connection):
    """Loses the connection when the other side has read all that was sent."""
    assert connection.is_alive()
    connection.close()


def tell(connection):
    """Prints the goodbye, after which nothing may come."""
    received = connection.wait_for("goodbye")
    print(f"{received.message.code} {received.message.message}" if received else "no goodbye", flush=True)
    if received and connection.receive():
        sys.exit("more came after the goodbye")


def tell_whether_it_lives(port, session, attempt, sent=None, **progress):
    while True:
        connection = Connection.to(port)
        connection.send(hello(attempt, session, **progress))
        received = connection.wait_for("welcome", "goodbye")
        # A session that is about to end has no further connection, and is soon forgotten.
        if not received or received.kind != "goodbye" or received.message.code != REPLACED:
            break
        attempt += 1
    answer = received.message
    print("the session lives" if received.kind == "welcome" and answer.resumed else "the session is gone")
    if sent is not None and answer.progress.received != sent:
        sys.exit(f"{answer.progress.received} ordinary frames came of {sent}")
    connection.send(of_kind("goodbye", code=CLOSED))
    connection.close()


# A server that breaks a rule


def serve(rule):
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"port {listener.getsockname()[1]}", flush=True)
    listener.settimeout(SECONDS)
    connection, _ = accept(listener)
    session = welcome().welcome
    if rule in WELCOMES:
        connection.send(*WELCOMES[rule]())
        tell_unless_ended(connection, rule)
    elif rule in RETURNS:
        connection.send(welcome())
        assert connection.is_alive()
        connection.close()
        connection, _ = accept(listener)
        connection.send(*RETURNS[rule](session))
        tell_unless_ended(connection, rule)
    elif rule in TOLERATED:
        connection.send(welcome(), *TOLERATED[rule](connection))
        print("the connection lives" if connection.is_alive() else "the connection is lost", flush=True)
    else:
        connection.send(welcome())
        connection.send(*FRAMES[rule](connection))
        tell(connection)
    connection.close()
    tell_return(listener, session)


def tell_unless_ended(connection, rule):
    if rule.startswith("nothing"):
        connection.close()
        print("no goodbye", flush=True)
    elif rule.startswith("violation"):
        print("no goodbye" if not connection.wait_for("goodbye") else "a goodbye answers a goodbye", flush=True)
    else:
        tell(connection)


def accept(listener):
    connection = Connection(listener.accept()[0])
    connection.socket.settimeout(SECONDS)
    received = connection.receive()
    if not received or received.kind != "hello":
        sys.exit(f"the first frame is no hello: {received}")
    connection.terms = received.message.terms
    return connection, received.message


def tell_return(listener, session):
    """Prints whether the next hello names the session."""
    listener.settimeout(RETURN_SECONDS)
    try:
        connection, again = accept(listener)
    except TimeoutError:
        print("the client does not come back")
        return
    if again.session_id == session.session_id:
        print("the client goes on with the session")
    elif not again.session_id:
        print("the client begins another session")
    else:
        print("the client names another session")
    # The client is admitted, so that its session can end.
    frame = welcome(session_id=bytes(16), token=bytes(16)) if again.session_id != session.session_id else None
    connection.send(frame or of_kind("goodbye", code=CLOSED))
    if frame:
        connection.send(of_kind("goodbye", code=CLOSED))
    connection.socket.shutdown(socket.SHUT_WR)
    while connection.receive():
        pass


if __name__ == "__main__":
    main()
