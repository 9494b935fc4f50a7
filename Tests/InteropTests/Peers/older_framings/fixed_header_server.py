#!/usr/bin/env python3
"""A server of the framing with fixed headers: big-endian numbers of 32 bits.

    request:   url  serial  length  content          from the client
    response:  url  status  serial  length  content  from the server

It prints its port, and answers by the url of a request. A number (`n`) is the first four bytes of the content.

    0x500  echo: the content comes back, with status 0
    0x501  failure: status 404 and a text
    0x502  the rest of the content comes back after n milliseconds, so that later requests are answered before
    0x503  the same, but only when n such requests wait: all of them at once, the last one first
    0x504  no answer
    0x505  first a push of number n, with the rest of the content; then an empty answer
    0x506  the answer twice
    0x507  first an answer to a request that was never made, then the answer
    0x508  a header that declares 0xFFFFFFFF bytes, in place of an answer
    0x509  half an answer, then the connection is closed
    0x50A  the connection is closed
    0x50B  an empty answer, when n more pings have come over this connection
    other  status 400

The url 1 is the heartbeat: it is answered with the same serial. Another url up to 0x400 that is its own serial is a
notification: it comes back as a push.
"""

import asyncio
import struct

from serving import CONTENT_LIMIT, Connection, ProtocolError, argument_parser, number, serve

HEARTBEAT = 1
LAST_NOTIFICATION = 0x400
LAST_SERIAL = 0xFFFFFFFE


class Closed(Exception):
    """The client asked for the connection's end."""


class FixedHeaderConnection(Connection):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.gathered: list[tuple[int, int, bytes]] = []
        self.ping_count = 0
        self.counting: list[tuple[int, int]] = []

    async def run(self) -> None:
        try:
            while not self.reader.at_eof():
                header = await self.reader.read(1)
                if not header:
                    break
                header += await self.reader.readexactly(11)
                url, serial, length = struct.unpack(">III", header)
                if length > CONTENT_LIMIT:
                    raise ProtocolError(f"{length} bytes are too many")
                self.received(url, serial, await self.reader.readexactly(length))
        except Closed:
            pass

    def respond(self, url: int, status: int, serial: int, content: bytes) -> None:
        self.send(struct.pack(">IIII", url, status, serial, len(content)) + content)

    def received(self, url: int, serial: int, content: bytes) -> None:
        if url == HEARTBEAT:
            if not self.arguments.no_pong:
                self.respond(HEARTBEAT, 0, serial, b"")
            self.ping_count += 1
            for count, asked in self.counting:
                if count == self.ping_count:
                    self.respond(0x50B, 0, asked, b"")
            return
        if url <= LAST_NOTIFICATION and serial == url:
            return self.respond(url, 0, url, content)
        if not LAST_NOTIFICATION < serial <= LAST_SERIAL:
            raise ProtocolError(f"{serial:#x} is the serial of no request")
        n, rest = number(content)
        match url:
            case 0x500:
                self.respond(url, 0, serial, content)
            case 0x501:
                self.respond(url, 404, serial, b"there is no such thing")
            case 0x502:
                self.start(self.respond_later(n, url, serial, rest))
            case 0x503:
                self.gathered.append((url, serial, rest))
                if len(self.gathered) >= n:
                    while self.gathered:
                        url, serial, rest = self.gathered.pop()
                        self.respond(url, 0, serial, rest)
            case 0x504:
                pass
            case 0x505:
                self.respond(n, 0, n, rest)
                self.respond(url, 0, serial, b"")
            case 0x506:
                self.respond(url, 0, serial, b"first")
                self.respond(url, 0, serial, b"second")
            case 0x507:
                self.respond(url, 0, LAST_SERIAL, b"nobody asked")
                self.respond(url, 0, serial, b"")
            case 0x508:
                self.send(struct.pack(">IIII", url, 0, serial, 0xFFFFFFFF) + b"the start of much")
            case 0x509:
                self.send(struct.pack(">IIII", url, 0, serial, 100) + b"not a hundred")
                raise Closed
            case 0x50A:
                raise Closed
            case 0x50B:
                self.counting.append((self.ping_count + n, serial))
            case _:
                self.respond(url, 400, serial, b"unknown url")

    async def respond_later(self, milliseconds: int, url: int, serial: int, content: bytes) -> None:
        await asyncio.sleep(milliseconds / 1000)
        self.respond(url, 0, serial, content)


if __name__ == "__main__":
    serve(FixedHeaderConnection, argument_parser(__doc__).parse_args())
