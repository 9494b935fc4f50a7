#!/usr/bin/env python3
"""A server of the framing with head lines: a JSON object with `type` and `size`, CRLF, and `size` bytes of content.

It prints its port, and answers in the order of the requests, by the type of each. A number (`n`) is the first four bytes
of the content, big-endian.

    echo       the content comes back
    delay      the rest of the content comes back after n milliseconds; what comes meanwhile waits for its turn. With
               n = 0xFFFFFFFF it comes back when the next request has come
    silent     no answer, ever
    note       no answer: none is expected
    push       first something of the type `news`, with the content; then an empty answer
    flood      first n things of the type `news`; then an empty answer
    text-size  the content comes back, with its size as a string in the head
    liberties  the content comes back, its head with white space, escapes, other members and another order
    twice      the answer twice
    malformed  in place of an answer, a head of which the content says what is wrong: json, utf8, duplicate, size, long,
               huge, line, surrogate
    cut        half an answer, then the connection is closed
    close      the connection is closed
    ping       `pong`, with the content
    other      `error`, with a text

An answer has the type of its request, but for `ping` and others.
"""

import asyncio
import json
import re

from serving import CONTENT_LIMIT, HEAD_LIMIT, Connection, ProtocolError, argument_parser, number, serve

MALFORMED = {
    "json": b'{"type":"malformed","size":0,}\r\n',
    "utf8": b'{"type":"\xff","size":0}\r\n',
    "duplicate": b'{"type":"malformed","size":0,"size":1}\r\n',
    "size": b'{"type":"malformed","size":-1}\r\n',
    "long": b'{"type":"malformed","size":0' + b" " * HEAD_LIMIT + b"}\r\n",
    "huge": b'{"type":"malformed","size":4294967296}\r\n',
    "line": b'{"type":"malformed","size":0}\n',
    "surrogate": b'{"type":"\\ud800","size":0}\r\n',
}


def head(type: str, size: int) -> bytes:
    return json.dumps({"type": type, "size": size}, ensure_ascii=False).encode() + b"\r\n"


def read_head(line: bytes) -> tuple[str, int]:
    def members(pairs: list) -> dict:
        if len(dict(pairs)) < len(pairs):
            raise ProtocolError("a member comes twice")
        return dict(pairs)

    try:
        fields = json.loads(line.decode(), object_pairs_hook=members)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ProtocolError(f"a head is not JSON: {error}")
    if not isinstance(fields, dict):
        raise ProtocolError("a head is not an object")
    type, size = fields.get("type"), fields.get("size")
    if not isinstance(type, str):
        raise ProtocolError("a head has no type")
    if isinstance(size, str) and re.fullmatch("0|[1-9][0-9]*", size, re.ASCII):
        size = int(size)
    # A bool is an int to Python.
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ProtocolError("a head has no size")
    if size > CONTENT_LIMIT:
        raise ProtocolError(f"{size} bytes are too many")
    return type, size


class HeadLineConnection(Connection):
    delayed: bytes | None = None

    async def run(self) -> None:
        while line := await self.read_line():
            type, size = read_head(line)
            content = await self.reader.readexactly(size)
            # One after the other: only the order distinguishes answers.
            if not await self.received(type, content):
                break

    async def read_line(self) -> bytes:
        try:
            line = await self.reader.readuntil(b"\r\n")
        except asyncio.LimitOverrunError:
            raise ProtocolError("a head does not end")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return b""
        if len(line) > HEAD_LIMIT:
            raise ProtocolError("a head is too long")
        return line

    def answer(self, type: str, content: bytes) -> None:
        self.send(head(type, len(content)) + content)

    async def received(self, type: str, content: bytes) -> bool:
        """Answers a request. Returns False when the connection is to be closed."""
        n, rest = number(content)
        if self.delayed is not None:
            self.answer("delay", self.delayed)
            self.delayed = None
        match type:
            case "delay" if n == 0xFFFFFFFF:
                self.delayed = rest
            case "echo":
                self.answer(type, content)
            case "delay":
                await asyncio.sleep(n / 1000)
                self.answer(type, rest)
            case "silent" | "note":
                pass
            case "push":
                self.answer("news", content)
                self.answer(type, b"")
            case "flood":
                for count in range(n):
                    self.answer("news", str(count).encode())
                self.answer(type, b"")
            case "text-size":
                self.send(json.dumps({"size": str(len(content)), "type": type}).encode() + b"\r\n" + content)
            case "liberties":
                line = (f'\t{{ "v" : [1, {{"type": null}}, "\\ud83c\\udf89"] , "\\u0073ize" :{len(content)}, '
                        f'"type":"libert\\u0069es", "é\\/": -1.5e+3 }} \r\n')
                self.send(line.encode() + content)
            case "twice":
                self.answer(type, b"first")
                self.answer(type, b"second")
            case "malformed":
                self.send(MALFORMED.get(content.decode(errors="replace"), MALFORMED["json"]))
            case "cut":
                self.send(head(type, 100) + b"not a hundred")
                return False
            case "close":
                return False
            case "ping":
                if not self.arguments.no_pong:
                    self.answer("pong", content)
            case _:
                self.answer("error", f"unknown type {type}".encode())
        return True


if __name__ == "__main__":
    serve(HeadLineConnection, argument_parser(__doc__).parse_args())
