"""The peer that has sessions, written from docs/session-protocol.md: see ../README.md for what its commands do."""

import argparse
import asyncio
import contextlib
from collections import Counter

from messages import ChatMessage
from session import DEADLINE_EXCEEDED, UNIMPLEMENTED, Offer, SessionLost, Status
from session_link import Client, Cuts, GoodbyeError, Link, Server
from session_messages import DRAINING, REFUSED, REPLACED, VERSION, Frame

SERVICE = "interop.Peer/"
# Field 200 of a frame: a kind of a later version, with four bytes.
UNKNOWN_KIND = bytes([0xC2, 0x0C, 4]) + b"kind"
FAILED_PRECONDITION = 9
# So that messages have different sizes.
PADDING = "Grüezi " * 150


def chat(id=0, text=""):
    return ChatMessage(id=str(id), text=text).SerializeToString()


def parse(payload):
    return ChatMessage.FromString(payload)


def by_name(*handlers):
    """Handlers by the methods that they are for: `await_end` is for AwaitEnd."""
    return {SERVICE + handler.__name__.title().replace("_", ""): handler for handler in handlers}


class Recorder:
    """What happened, in the order in which it did."""

    def __init__(self):
        self.notes = []
        self.requests = []
        # Requests that hung until they were ended.
        self.ended = []

    def __str__(self):
        return "\n".join([" ".join(self.notes), " ".join(self.requests), " ".join(self.ended)])


class PeerServer:
    """The methods that the tests call: see ../README.md."""

    def __init__(self, options):
        self.record = Recorder()
        self.cuts = Cuts(options.cuts, options.seed)
        self.hanging, self.ended = asyncio.Event(), asyncio.Event()
        requests = by_name(
            self.echo, self.fail, self.count, self.hang, self.await_hanging, self.await_end, self.await_notes, self.report, self.connections, self.start,
            self.drain, self.usurp, self.unknown, self.ask, self.ping, self.unplaced,
        )
        pushes = by_name(self.note, self.forget, self.cut)
        offer = Offer(frames=options.frames, bytes=options.bytes)
        self.server = Server(
            requests, pushes, offer, self.cuts, options.maximum_sessions, options.version, options.forgetful
        )

    async def echo(self, session, request):
        self.record.requests.append(parse(request.payload).id)
        return request.payload

    async def fail(self, session, request):
        details = [ChatMessage(text="first"), ChatMessage(text="second")]
        raise Status(FAILED_PRECONDITION, "Grüezi: " + parse(request.payload).text, details)

    async def count(self, session, request):
        """A stream: as many messages as the request's id says."""
        try:
            for number in range(int(parse(request.payload).id)):
                await request.push(chat(number))
        except asyncio.CancelledError:
            self.record.ended.append("stream")
            self.ended.set()
            raise
        return b""

    async def hang(self, session, request):
        """Never answers; the report says that it was ended."""
        self.hanging.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.record.ended.append(parse(request.payload).id)
            self.ended.set()

    async def await_hanging(self, session, request):
        await self.hanging.wait()
        self.hanging.clear()
        return b""

    async def await_end(self, session, request):
        await self.ended.wait()
        self.ended.clear()
        return b""

    async def await_notes(self, session, request):
        """Answers when as many notes have come as the id says."""
        while len(self.record.notes) < int(parse(request.payload).id):
            await session.change()
        return b""

    async def report(self, session, request):
        """The record in three lines, how many connections were cut, and how many frames came twice."""
        return chat(0, f"{self.record}\n{self.cuts.made}\n{session.counts['doubled']}")

    async def connections(self, session, request):
        """The id says how many connections the session has had."""
        return chat(session.counts["connections"])

    async def start(self, session, request):
        """Pushes as many News as the id says, and answers when the last one is accepted."""
        for number in range(int(parse(request.payload).id)):
            await session.push(SERVICE + "News", chat(number, PADDING[:number % 50 * 20]))
        return b""

    async def drain(self, session, request):
        """Says that it goes away, pushes News after that, and answers when a request that hangs has ended."""
        session.link.say_goodbye(DRAINING, "going away", pause=1)
        await session.push(SERVICE + "News", request.payload)
        return await self.await_end(session, request)

    async def usurp(self, session, request):
        """As if another connection had taken the session."""
        session.link.say_goodbye(REPLACED, "a newer connection has the session")

    async def unknown(self, session, request):
        """Sends a frame of an unknown kind with a place, and unknown fields elsewhere; answers when all is processed."""
        kind = Frame.FromString(UNKNOWN_KIND)
        await session.send(kind)
        news = Frame.FromString(UNKNOWN_KIND)
        news.push.method, news.push.payload = SERVICE + "News", chat(1)
        news.push.MergeFromString(UNKNOWN_KIND)
        await session.send(news)
        while session.ordinary_out.waiting or session.ordinary_out.kept:
            await session.change()
        return b""

    async def ask(self, session, request):
        """Asks the client, and answers with the status of that."""
        try:
            await session.call(SERVICE + "Question", request.payload)
            return chat(0)
        except Status as status:
            return chat(status.code, status.message)

    async def ping(self, session, request):
        await session.ping()
        return b""

    async def unplaced(self, session, request):
        await session.push(SERVICE + "News", request.payload, has_place=False)
        return b""

    async def note(self, session, push):
        self.record.notes.append(parse(push.payload).id)

    async def cut(self, session, push):
        """Loses the connection when all that was sent is acknowledged."""
        while any(lane.kept for lane, _ in session.lanes):
            await session.change()
        session.link.abort()

    async def forget(self, session, push):
        """The session is forgotten and its connection lost."""
        self.server.forget(session)
        session.link.abort()


# What a client does with our server, and expects of it


def require(condition, problem):
    if not condition:
        raise AssertionError(problem)


async def expect_status(code, call):
    try:
        await call
    except Status as status:
        require(status.code == code, f"status {status.code} instead of {code}: {status.message}")
        return status
    raise AssertionError(f"no status {code}")


async def calls(port, options):
    """Each kind of request and push, once."""
    news = asyncio.Queue()

    async def take(session, push):
        news.put_nowait(parse(push.payload).id)

    async with Client(port, pushes={SERVICE + "News": take}, name="ada") as client:
        session = client.session
        reply = await session.call(SERVICE + "Echo", chat(7, "Grüezi"), metadata={"key": "value"})
        require(parse(reply).text == "Grüezi", "the echo differs")

        status = await expect_status(FAILED_PRECONDITION, session.call(SERVICE + "Fail", chat(0, "no")))
        require(status.message == "Grüezi: no", status.message)
        texts = []
        for detail in status.details:
            require(detail.Unpack(message := ChatMessage()), detail.type_url)
            texts.append(message.text)
        require(texts == ["first", "second"], texts)

        parts = []

        async def part(payload):
            parts.append(parse(payload).id)

        await session.call(SERVICE + "Count", chat(1_000), on_part=part)
        require(parts == [str(number) for number in range(1_000)], parts)

        for number in range(100):
            await session.push(SERVICE + "Note", chat(number))
        await session.call(SERVICE + "Start", chat(100))
        came = [await news.get() for _ in range(100)]
        require(came == [str(number) for number in range(100)], came)

        await expect_status(UNIMPLEMENTED, session.call(SERVICE + "Nothing"))
        await session.push(SERVICE + "Nothing")
        await session.ping()


async def cancels(port, options):
    """Cancels a request that the server works on, and lets another run into its deadline."""
    async with Client(port) as client:
        session = client.session
        hanging = asyncio.create_task(session.call(SERVICE + "Hang"))
        await session.call(SERVICE + "AwaitHanging")
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        await session.call(SERVICE + "AwaitEnd", timeout=60)
        await expect_status(DEADLINE_EXCEEDED, session.call(SERVICE + "Hang", timeout=0.05))
        await session.call(SERVICE + "AwaitEnd", timeout=60)
        # That of the server's is cancelled while it runs here.
        await session.call(SERVICE + "Echo", chat(1))


async def exchange(port, options):
    """Messages both ways over connections that are cut."""
    expected = [str(number) for number in range(options.count)]
    news = []

    async def take(session, push):
        news.append(parse(push.payload).id)

    cuts = Cuts(options.cuts, options.seed)
    offer = Offer(options.frames, options.bytes)
    handlers = {SERVICE + "News": take}
    async with Client(port, pushes=handlers, offer=offer, cuts=cuts, is_forgetful=options.forgetful) as client:
        session = client.session

        async def note():
            for number in range(options.count):
                await session.push(SERVICE + "Note", chat(number, PADDING[:number % 50 * 20]))

        async def ask(first):
            for number in range(first, options.count // 4, 4):
                reply = await session.call(SERVICE + "Echo", chat(number))
                require(parse(reply).id == str(number), "the echo differs")

        async def stream():
            parts = []

            async def part(payload):
                parts.append(parse(payload).id)

            await session.call(SERVICE + "Count", chat(options.count), on_part=part)
            require(parts == expected, "the stream differs")

        start = session.call(SERVICE + "Start", chat(options.count))
        await asyncio.gather(start, note(), stream(), *(ask(first) for first in range(4)))
        while len(news) < options.count:
            await session.change()
    require(news == expected, "the news differ")
    require(cuts.made == options.cuts, f"{cuts.made} connections were cut")
    require(options.forgetful or not session.counts["doubled"], f"{session.counts['doubled']} frames came twice")
    # All but the first; a cut in the midst of a welcome is none.
    require(client.resumed[1:].count(False) == 0, client.resumed)


async def lost(port, options):
    """The server forgets the session while a request hangs, and a push is not processed."""
    async with Client(port) as client:
        session = client.session
        hanging = asyncio.create_task(session.call(SERVICE + "Hang"))
        await session.call(SERVICE + "AwaitHanging")
        await session.push(SERVICE + "Forget", chat(1))
        result, = await asyncio.gather(hanging, return_exceptions=True)
        require(isinstance(result, SessionLost), f"the request ended with {result!r}")
        await session.call(SERVICE + "Echo", chat(1))
        require(client.resumed == [False, False], client.resumed)
        methods = Counter(frame.push.method for frame in client.in_doubt)
        require(methods == {SERVICE + "Forget": 1}, methods)


async def replaced(port, options):
    """A hello that comes late does nothing to the session; a later connection takes it from the present one."""
    async with Client(port) as client:
        session = client.session
        await session.call(SERVICE + "Echo", chat(1))
        late = client.hello()
        late.hello.attempt = 1
        answer, _ = await say(port, late)
        require(answer.goodbye.code == REPLACED, answer)
        await session.call(SERVICE + "Echo", chat(2))
        answer, link = await say(port, client.hello())
        require(answer.welcome.resumed, answer)
        await expect_goodbye(REPLACED, client)
        link.close()


async def say(port, hello):
    """The answer to a hello, on a connection of its own."""
    link = Link(*await asyncio.open_connection("127.0.0.1", port))
    link.send(hello)
    answer, _ = await link.receive()
    return answer, link


async def expect_goodbye(code, client):
    try:
        await client.running
    except GoodbyeError as goodbye:
        require(goodbye.code == code, str(goodbye))


async def twice(port, options):
    """Sends again what was processed."""
    async with Client(port, is_forgetful=True) as client:
        session = client.session
        await session.call(SERVICE + "Echo", chat(1))
        await session.push(SERVICE + "Note", chat(1))
        await session.processed()
        session.link.abort()
        await session.call(SERVICE + "Echo", chat(2))
        await session.push(SERVICE + "Note", chat(2))
        require(client.resumed == [False, True], client.resumed)


async def draining(port, options):
    """The server drains: what runs is answered, nothing more begins, and the client comes back."""
    async with Client(port) as client:
        session = client.session
        hanging = asyncio.create_task(session.call(SERVICE + "Hang"))
        await session.call(SERVICE + "AwaitHanging")
        last = asyncio.create_task(session.call(SERVICE + "Drain"))
        while not session.draining:
            await session.change()
        late = asyncio.create_task(session.call(SERVICE + "Echo", chat(2)))
        await session.push(SERVICE + "Note", chat(3))
        # With that ends what runs, and Drain is answered: a cancel begins nothing.
        hanging.cancel()
        await last
        require(not late.done(), "a request began while the server drained")
        await late
        await session.processed()
        require(len(client.resumed) == 2 and not client.in_doubt, f"{client.resumed} {client.in_doubt}")


async def refused(port, options):
    async with Client(port, metadata={"credentials": "wrong"}) as client:
        await expect_goodbye(REFUSED, client)


async def version(port, options):
    async with Client(port, versions=(2, 3)) as client:
        await expect_goodbye(VERSION, client)


async def unknown(port, options):
    """Frames of unknown kinds and with unknown fields."""
    async with Client(port) as client:
        session = client.session
        for _ in range(20):
            await session.send(Frame.FromString(UNKNOWN_KIND))
        frame = Frame.FromString(UNKNOWN_KIND)
        frame.push.method, frame.push.payload = SERVICE + "Note", chat(1)
        frame.push.MergeFromString(UNKNOWN_KIND)
        await session.send(frame)
        await session.processed()
        session.link.send(Frame.FromString(UNKNOWN_KIND))
        await session.call(SERVICE + "Echo", chat(2))
        # One that goes on with version 1 to 9 speaks version 1.
        client.versions = (1, 9)
        session.link.abort()
        await session.call(SERVICE + "Echo", chat(3))
        require(client.resumed == [False, True], client.resumed)


SCENARIOS = {scenario.__name__: scenario for scenario in (
    calls, cancels, exchange, lost, replaced, twice, draining, refused, version, unknown,
)}


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("server")
    server.add_argument("--version", type=int, default=1)
    server.add_argument("--maximum-sessions", type=int, default=1_000)
    client = commands.add_parser("client")
    client.add_argument("port", type=int)
    client.add_argument("scenario", choices=SCENARIOS)
    client.add_argument("--count", type=int, default=3_000)
    for command in (server, client):
        command.add_argument("--frames", type=int, default=65_536)
        command.add_argument("--bytes", type=int, default=8 << 20)
        command.add_argument("--cuts", type=int, default=0)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--forgetful", action="store_true")
    options = parser.parse_args()
    if options.command == "server":
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(options))
    else:
        asyncio.run(asyncio.wait_for(SCENARIOS[options.scenario](options.port, options), 100))


async def serve(options):
    await PeerServer(options).server.serve()


if __name__ == "__main__":
    main()
