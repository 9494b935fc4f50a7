"""The peer that speaks WebSocket with PyPI's websockets: see ../README.md for what its commands do."""

import io
import random
import ssl
import sys
import threading

from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidStatus
from websockets.http11 import USER_AGENT
from websockets.sync.client import connect
from websockets.sync.server import basic_auth, serve

from messages import ChatMessage, check, corpus, read_all, report, write_all

# With a time-out, websockets changes that of the socket which another thread is reading: over TLS, that read may fail then
# ("The read operation timed out"), and with it the end of the connection.
NO_TIMEOUT = {"close_timeout": None}


def echo_server(certificate=None, key=None):
    """Sends back what one client sends, texts too, until that closes."""
    context = None
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
    problems = []

    def echo(connection):
        try:
            for message in connection:
                connection.send(message)
        except ConnectionClosed as error:
            problems.append(f"the connection did not end in order: {error}")
        threading.Thread(target=server.shutdown).start()

    with serve(
        echo, "127.0.0.1", 0, ssl=context, max_size=None, subprotocols=["chat.v2", "chat.v1"],
        process_request=basic_auth(realm="test", credentials=("ada", "secret")), **NO_TIMEOUT,
    ) as server:
        print(server.socket.getsockname()[1], flush=True)
        server.serve_forever()
    report("\n".join(problems))


def echo_client(url, name, authority=None):
    """Sends a corpus as a stream that is cut anywhere into messages, some of them fragmented, and compares what comes back."""
    expected = corpus(name, ChatMessage)
    stream = io.BytesIO()
    write_all(expected, stream)
    data = stream.getvalue()
    source = random.Random(1)
    received = bytearray()

    with open_client(url, authority) as connection:
        def send():
            start = 0
            while start < len(data):
                end = start + source.choice([0, 1, 2, 100, 5_000, 300_000])
                piece = data[start:end]
                connection.send([piece[:3], piece[3:]] if len(piece) > 3 else piece)
                start = end

        sender = threading.Thread(target=send)
        sender.start()
        while len(received) < len(data):
            received += connection.recv()
        sender.join()
        assert connection.protocol.extensions == [], "permessage-deflate was offered, and is declined"
    report(check(read_all(io.BytesIO(bytes(received))), expected))
    if connection.close_code != 1000:
        report(f"closed with {connection.close_code}")


def texts(url, authority=None):
    """Sends texts and bytes, with pings between them, and compares what comes back."""
    with open_client(url, authority, subprotocols=["other", "chat.v1", "chat.v2"]) as connection:
        if connection.subprotocol != "chat.v2":
            report(f"the subprotocol is {connection.subprotocol}")
        for message in ["Grüezi 🎉", "", b"", b"\0\xff", "x" * 300_000, ["frag", "men", "ted"]]:
            answered = connection.ping()
            connection.send(message)
            if not answered.wait(10):
                report("a ping was not answered")
            expected = "".join(message) if isinstance(message, list) else message
            if connection.recv() != expected:
                report("another message came back")


def refused(url, status, authority=None):
    try:
        with open_client(url, authority, origin="https://elsewhere.example.org"):
            report("it was not refused")
    except InvalidStatus as error:
        if error.response.status_code != int(status):
            report(f"refused with {error.response.status_code}")


def closed(url, code, authority=None):
    """Sends a text where frames are expected, and compares the code with which that is answered."""
    with open_client(url, authority) as connection:
        connection.send("no frame")
        try:
            connection.recv()
            report("it was not closed")
        except ConnectionClosedOK:
            report("it was closed in order")
        except ConnectionClosed as error:
            if error.rcvd is None or error.rcvd.code != int(code):
                report(f"closed with {error.rcvd}")


def open_client(url, authority=None, **options):
    context = ssl.create_default_context(cafile=authority) if authority else None
    return connect(url, ssl=context, max_size=None, user_agent_header=USER_AGENT, **NO_TIMEOUT, **options)


def main():
    command, *arguments = sys.argv[1:]
    commands = {
        "echo-server": echo_server, "echo-client": echo_client, "texts": texts, "refused": refused, "closed": closed,
    }
    if command not in commands:
        sys.exit(f"unknown command {command}")
    commands[command](*arguments)


main()
