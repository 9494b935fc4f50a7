"""A client that breaks one rule of docs/session-protocol.md, and prints what the server says to that: see ../README.md."""

import socket
import sys

from google.protobuf.proto import parse_length_prefixed

from messages import ChatMessage
from session_messages import CLOSED, REPLACED, Frame, delimited, varint

SERVICE = "interop.Peer/"
# Field 200 with 300 bytes, which no window counts.
PADDING = bytes([0xC2, 0x0C]) + varint(300) + bytes(300)


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.stream = self.socket.makefile("rb")

    def send(self, *frames):
        self.socket.sendall(b"".join(frame if isinstance(frame, bytes) else delimited(frame) for frame in frames))

    def receive(self):
        """The next frame; None when the connection has ended."""
        try:
            return parse_length_prefixed(Frame, self.stream)
        except ConnectionError:
            return None

    def wait_for(self, *kinds):
        """The next frame of one of the kinds; None when there is none."""
        while (frame := self.receive()) is not None:
            if frame.WhichOneof("kind") in kinds:
                return frame
        return None

    def open(self, hello):
        """Begins a session or goes on with one."""
        self.send(hello)
        frame = self.wait_for("welcome", "goodbye")
        if not frame or not frame.HasField("welcome"):
            sys.exit(f"not let in: {frame}")
        return frame.welcome


def hello(attempt=1, welcome=None, **fields):
    message = (frame := Frame()).hello
    message.minimum_version = message.maximum_version = 1
    message.window.frames, message.window.bytes = 1_000, 1 << 20
    message.maximum_requests = 10
    message.attempt = attempt
    if welcome:
        message.session_id, message.token = welcome.session_id, welcome.token
    for name, value in fields.items():
        setattr(message, name, value)
    return frame


def push(sequence=0, method="Note", payload=b"", **fields):
    frame = Frame(sequence=sequence, **fields)
    frame.push.method, frame.push.payload = SERVICE + method, payload
    return frame


def request(sequence, serial=1, method="Echo", **fields):
    frame = Frame(sequence=sequence, **fields)
    frame.request.serial, frame.request.method = serial, SERVICE + method
    frame.request.payload = ChatMessage(id="1").SerializeToString()
    return frame


def response(**fields):
    frame = Frame(**fields)
    frame.response.serial = 1
    return frame


def cancel(**fields):
    frame = Frame(**fields)
    frame.cancel.serial = 1
    return frame


def ping(**fields):
    frame = Frame(**fields)
    frame.ping.number = 1
    return frame


def without_window():
    frame = hello()
    frame.hello.ClearField("window")
    return frame


def with_window(frames, bytes):
    frame = hello()
    frame.hello.window.frames, frame.hello.window.bytes = frames, bytes
    return frame


def padded(frame, kind):
    getattr(frame, kind).MergeFromString(PADDING)
    return frame


def welcome_of_its_own():
    frame = Frame()
    frame.welcome.version = 1
    frame.welcome.session_id = frame.welcome.token = bytes(16)
    frame.welcome.window.frames, frame.welcome.window.bytes = 1_000, 1 << 20
    return frame


def text_that_is_none():
    """A push whose method is no UTF-8."""
    data = push(1, "Nöte").SerializeToString().replace("ö".encode(), b"\xff\xfe")
    return varint(len(data)) + data


NO_MESSAGE = b"\x03\x07\x07\x07"
# In a field of text of 2 bytes there are 200 to come.
TRUNCATED = b"\x04\x1a\x02\x4a\xc8"

# In place of a hello.
OPENINGS = {
    "first-frame-no-hello": lambda: [push(1)],
    "no-window": lambda: [without_window()],
    "window-of-0-frames": lambda: [with_window(0, 1 << 20)],
    "window-of-0-bytes": lambda: [with_window(10, 0)],
    "window-too-small": lambda: [with_window(10, 4_095)],
    "hello-too-long": lambda: [varint((64 << 10) + 1)],
    "hello-no-message": lambda: [NO_MESSAGE],
    "hello-truncated-inside": lambda: [TRUNCATED],
    "hello-length-of-6-bytes": lambda: [b"\x80" * 5 + b"\x01"],
}

# In a session.
FRAMES = {
    "second-hello": lambda: [hello(attempt=2)],
    "welcome-from-client": lambda: [welcome_of_its_own()],
    "frame-too-long": lambda: [varint((4 << 20) + 1)],
    "frame-no-message": lambda: [NO_MESSAGE],
    "text-no-utf-8": lambda: [text_that_is_none()],
    "length-of-6-bytes": lambda: [b"\x80" * 5 + b"\x01"],
    "places-in-both-lanes": lambda: [response(sequence=1, urgent_sequence=1)],
    "request-urgent": lambda: [request(0, urgent_sequence=1)],
    "push-urgent": lambda: [push(urgent_sequence=1)],
    "ping-with-place": lambda: [ping(sequence=1)],
    "request-without-place": lambda: [request(0)],
    "response-without-place": lambda: [response()],
    "cancel-without-place": lambda: [cancel()],
    "later-place": lambda: [push(2)],
    "later-urgent-place": lambda: [cancel(urgent_sequence=2)],
    "place-left-out": lambda: [push(1), push(2), push(4)],
    "acknowledged-unsent": lambda: [Frame(acknowledgement=1)],
    "acknowledged-unsent-urgent": lambda: [Frame(urgent_acknowledgement=1)],
    "push-padded": lambda: [padded(push(1), "push")],
    "request-padded": lambda: [padded(request(1), "request")],
    "response-padded": lambda: [padded(response(urgent_sequence=1), "response")],
    "message-larger-than-window": lambda: [push(1, payload=bytes(4_096))],
    "serial-0": lambda: [request(1, serial=0)],
    "serial-in-use": lambda: [request(1, 7, "Hang"), request(2, 7, "Hang")],
    # The server of the test grants 4 frames and 4,096 bytes, and its handler of Block does not return.
    "window-frames": lambda: [push(place, "Block") for place in range(1, 6)],
    "window-bytes": lambda: [push(place, "Block", ChatMessage(text="x" * 1_600).SerializeToString()) for place in range(1, 3)],
}

# In the hello that goes on with a session in which the server sent one ordinary frame and one urgent one, both acknowledged.
RESUMPTIONS = {
    "processed-ahead": dict(processed=2, received=2, urgent_processed=1),
    "received-ahead": dict(processed=1, received=2, urgent_processed=1),
    "urgent-processed-ahead": dict(processed=1, urgent_processed=2),
    "processed-behind": dict(processed=0, urgent_processed=1),
    "urgent-processed-behind": dict(processed=1, urgent_processed=0),
    "resuming-without-window": dict(processed=1, urgent_processed=1),
}


def main():
    port, rule = int(sys.argv[1]), sys.argv[2]
    connection = Connection(port)
    if rule in OPENINGS:
        connection.send(*OPENINGS[rule]())
        tell(connection)
    elif rule in FRAMES:
        welcome = connection.open(hello())
        connection.send(*FRAMES[rule]())
        tell(connection)
        tell_whether_it_lives(port, hello(2, welcome))
    else:
        welcome = connection.open(hello())
        connection.send(request(1, method="Start"))
        came = {connection.wait_for("push", "response").WhichOneof("kind") for _ in range(2)}
        assert came == {"push", "response"}, came
        connection.send(Frame(acknowledgement=1, urgent_acknowledgement=1))
        # It has read what was sent before this.
        connection.send(ping())
        assert connection.wait_for("pong")
        connection.socket.close()
        connection.stream.close()
        connection = Connection(port)
        returning = hello(2, welcome, **RESUMPTIONS[rule])
        if rule == "resuming-without-window":
            returning.hello.ClearField("window")
        connection.send(returning)
        tell(connection)
        tell_whether_it_lives(port, hello(3, welcome, processed=1, received=1, urgent_processed=1))


def tell(connection):
    """Prints the server's goodbye, after which nothing may come."""
    frame = connection.wait_for("goodbye")
    print(f"{frame.goodbye.code} {frame.goodbye.message}" if frame else "no goodbye")
    if frame and connection.receive():
        sys.exit("more came after the goodbye")


def tell_whether_it_lives(port, hello):
    while True:
        connection = Connection(port)
        connection.send(hello)
        answer = connection.wait_for("welcome", "goodbye")
        # A session that is about to end goes on over no connection, and is forgotten soon.
        if not answer.HasField("goodbye") or answer.goodbye.code != REPLACED:
            break
        hello.hello.attempt += 1
    print("the session lives" if answer.welcome.resumed else "the session is gone")
    goodbye = Frame()
    goodbye.goodbye.code = CLOSED
    connection.send(goodbye)


main()
