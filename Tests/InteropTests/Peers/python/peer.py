"""The Python peer: see ../README.md for what its commands do."""

import os
import socket
import sys
import threading
from pathlib import Path

from google.protobuf.proto import parse_length_prefixed, serialize_length_prefixed

from messages import ChatMessage, check, corpus, read_all, read_text, report, write_all, write_text


def echo_server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
        with connection, connection.makefile("rwb") as stream:
            while (message := parse_length_prefixed(ChatMessage, stream)) is not None:
                serialize_length_prefixed(message, stream)
                stream.flush()


def echo_client(port, messages):
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        received = []
        with connection.makefile("rb") as stream:
            reader = threading.Thread(target=lambda: received.extend(read_all(stream)))
            reader.start()
            with connection.makefile("wb") as output:
                write_all(messages, output)
            connection.shutdown(socket.SHUT_WR)
            reader.join()
    report(check(received, messages))


def reference(name):
    """The very bytes of the reference stream: the order of a map's entries differs from run to run."""
    return Path(os.environ["LIFELINE_CORPUS_DIR"], name + ".delimited").read_bytes()


def send_server(name):
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
        with connection:
            connection.sendall(reference(name))
            connection.shutdown(socket.SHUT_WR)
            # If it closed before the client has ended, the connection might be reset, and sent messages lost.
            while connection.recv(1 << 16):
                pass


def send(port, name, one_byte):
    data = reference(name)
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        step = 1 if one_byte else 1 << 20
        for start in range(0, len(data), step):
            connection.sendall(data[start:start + step])


def main():
    command, *arguments = sys.argv[1:]
    if command == "make" and len(arguments) == 1:
        write_all(corpus(arguments[0], ChatMessage), sys.stdout.buffer)
    elif command == "make":
        write_text(corpus(arguments[0], ChatMessage), arguments[1], sys.stdout)
    elif command == "check" and len(arguments) == 1:
        report(check(read_all(sys.stdin.buffer), corpus(arguments[0], ChatMessage)))
    elif command == "check":
        report(check(read_text(arguments[1], sys.stdin), corpus(arguments[0], ChatMessage)))
    elif command == "echo-server":
        echo_server()
    elif command == "echo-client":
        echo_client(arguments[0], corpus(arguments[1], ChatMessage))
    elif command == "send-server":
        send_server(arguments[0])
    elif command == "send":
        send(arguments[0], arguments[1], "--one-byte" in arguments)
    else:
        sys.exit(f"unknown command {command}")


main()
