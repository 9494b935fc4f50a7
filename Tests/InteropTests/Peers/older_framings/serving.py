"""What both servers need: the port, the connections, and what becomes of peers that break the rules."""

import argparse
import asyncio
import struct
import sys

CONTENT_LIMIT = 4 << 20
HEAD_LIMIT = 4096


class ProtocolError(Exception):
    """The client sent what is no frame."""


def argument_parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1 (default: any; it is printed)")
    parser.add_argument("--chunk", type=int, metavar="BYTES",
                        help="write no more than so many bytes at once, so that frames come in pieces")
    parser.add_argument("--no-pong", action="store_true", help="leave pings without an answer")
    return parser


class Connection:
    """A client, until it ends its side, or breaks the rules, or the server closes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, arguments: argparse.Namespace):
        self.reader = reader
        self.writer = writer
        self.arguments = arguments
        self.tasks: set[asyncio.Task] = set()
        self.unsent = asyncio.Queue()

    async def run(self) -> None:
        """Reads frames until there are no more. To be made of the framing."""
        raise NotImplementedError

    async def serve(self) -> None:
        sender = asyncio.create_task(self.send_all())
        try:
            await self.run()
            # Answers that are under way are still sent.
            self.unsent.put_nowait(None)
            await sender
        except ProtocolError as error:
            print(f"protocol error: {error}", file=sys.stderr, flush=True)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            print(f"connection lost: {error!r}", file=sys.stderr, flush=True)
        finally:
            sender.cancel()
            for task in self.tasks:
                task.cancel()
            self.writer.close()

    def start(self, work) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def send(self, data: bytes) -> None:
        self.unsent.put_nowait(data)

    async def send_all(self) -> None:
        while (data := await self.unsent.get()) is not None:
            size = self.arguments.chunk or max(len(data), 1)
            for start in range(0, len(data), size):
                self.writer.write(data[start:start + size])
                await self.writer.drain()
                if self.arguments.chunk:
                    await asyncio.sleep(0.001)  # else the kernel joins them again


def serve(make_connection, arguments: argparse.Namespace) -> None:
    async def main() -> None:
        async def accept(reader, writer) -> None:
            await make_connection(reader, writer, arguments).serve()

        # The limit is that of a line; contents may be longer.
        server = await asyncio.start_server(accept, "127.0.0.1", arguments.port, limit=HEAD_LIMIT)
        print(server.sockets[0].getsockname()[1], flush=True)
        async with server:
            await server.serve_forever()

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass


def number(content: bytes) -> tuple[int, bytes]:
    """The 32-bit big-endian number at the start of a content, and the rest; 0 when it is too short."""
    return (struct.unpack(">I", content[:4])[0], content[4:]) if len(content) >= 4 else (0, b"")
