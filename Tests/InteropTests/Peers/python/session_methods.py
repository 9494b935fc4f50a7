"""The methods of interop.Peer: see ../README.md."""

import asyncio

from messages import ChatMessage
from session import Status, takes_parts
from session_lanes import Entry
from session_messages import DRAINING, REPLACED, Frame, varint
from session_streams import Cancel, RequestEnd, RequestPart, Response, ResponsePart

SERVICE = "interop.Peer/"
# A kind of a later version with a place in the ordinary lane, one in the urgent lane, and one without a place.
UNKNOWN_ORDINARY, UNKNOWN_URGENT, UNKNOWN_UNPLACED = (
    varint(number << 3 | 2) + b"\x04kind" for number in (31, 47, 200)
)
FAILED_PRECONDITION = 9
# So that messages have different sizes.
PADDING = "Grüezi " * 150


def chat(id=0, text=""):
    return ChatMessage(id=str(id), text=text).SerializeToString()


def parse(payload):
    return ChatMessage.FromString(payload)


def padding(number):
    return PADDING[:number % 50 * 20]


def checksum(ids):
    """Tells whether all ids came, each once, and in order."""
    sum = 0
    for id in ids:
        sum = (sum * 31 + int(id) + 1) % 1_000_000_007
    return str(sum)


def by_name(*handlers):
    """Handlers by the methods that they are for: `await_end` is for AwaitEnd."""
    return {SERVICE + handler.__name__.title().replace("_", ""): handler for handler in handlers}


async def enter_unknown(session, data):
    """Sends a frame that no kind of this version has."""
    entry = Entry("unknown", None, data=data)
    lane = session.urgent_out if data == UNKNOWN_URGENT else session.ordinary_out
    lane.waiting.append(entry)
    session.wake.set()


class Recorder:
    """What happened, in the order in which it did."""

    def __init__(self):
        self.notes, self.values = [], []
        self.requests = []
        # Requests that were ended before they were answered.
        self.ended = []

    def __str__(self):
        return "\n".join([" ".join(self.notes), " ".join(self.requests), " ".join(self.ended)])


# Methods that both a server and a client have


@takes_parts
async def collect(session, request):
    """Replies with the count of the parts as id, and with the checksum of their ids as text."""
    ids = [parse(part).id async for part in request]
    return chat(len(ids), checksum(ids))


@takes_parts
async def converse(session, request):
    """Answers each part with a part that is the same."""
    async for part in request:
        await request.send(part)
    return b""


async def count(session, request):
    """A stream of as many messages as the id says."""
    for number in range(int(parse(request.payload).id)):
        await request.send(chat(number, padding(number)))
    return b""


async def time_left(session, request):
    """The id says how many milliseconds the request had left when it was sent."""
    return chat(request.timeout_milliseconds)


class PeerMethods:
    def __init__(self, cuts):
        self.record, self.cuts, self.server = Recorder(), cuts, None
        self.hanging, self.ended, self.released = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.requests = by_name(
            self.echo, self.fail, self.count, self.collect, self.converse, self.pick, self.hoard, self.release,
            self.hang, self.await_hanging, self.await_end, self.await_notes, time_left, self.report, self.values,
            self.counts, self.connections, self.start, self.start_values, self.behind, self.blanks, self.drain,
            self.overload, self.usurp, self.unknown, self.late, self.ask, self.ask_collect, self.ask_converse,
            self.ask_count, self.ask_time_left, self.ask_and_cancel, self.ping, self.unplaced, self.unplaced_parts,
            self.wrong_form, self.tell,
        )
        self.pushes = by_name(self.note, self.value, self.block, self.forget, self.cut)

    # Requests

    async def echo(self, session, request):
        self.record.requests.append(parse(request.payload).id)
        return request.payload

    async def fail(self, session, request):
        details = [ChatMessage(text="first"), ChatMessage(text="second")]
        raise Status(FAILED_PRECONDITION, "Grüezi: " + parse(request.payload).text, details)

    async def count(self, session, request):
        with self.noting_the_end("stream"):
            return await count(session, request)

    @takes_parts
    async def collect(self, session, request):
        with self.noting_the_end("collect"):
            return await collect(session, request)

    @takes_parts
    async def converse(self, session, request):
        with self.noting_the_end("converse"):
            return await converse(session, request)

    @takes_parts
    async def pick(self, session, request):
        """Replies with the first part, and leaves the others."""
        return await request.take() or b""

    @takes_parts
    async def hoard(self, session, request):
        """Takes no part before `Release`; then it replies as `Collect`."""
        self.hanging.set()
        with self.noting_the_end("hoard"):
            await self.released.wait()
            self.released.clear()
            return await collect(session, request)

    async def release(self, session, request):
        self.released.set()
        return b""

    async def hang(self, session, request):
        """Never answers; the report says that it was ended."""
        self.hanging.set()
        with self.noting_the_end(parse(request.payload).id):
            await asyncio.Event().wait()

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
        """The record in three lines, how many connections were cut, and how many frames were dropped to come again."""
        return chat(0, f"{self.record}\n{self.cuts.made}\n{session.counts['dropped']}")

    async def values(self, session, request):
        """The ids of all values that came."""
        return chat(len(self.record.values), " ".join(self.record.values))

    async def counts(self, session, request):
        """What the session has counted: a name and a number in each line."""
        return chat(0, "\n".join(f"{name} {number}" for name, number in sorted(session.counts.items())))

    async def connections(self, session, request):
        """The id says how many connections the session has had."""
        return chat(session.counts["connections"])

    async def start(self, session, request):
        """Pushes as many News as the id says, and answers when the last one is accepted."""
        for number in range(int(parse(request.payload).id)):
            await session.push(SERVICE + "News", chat(number, padding(number)))
        return b""

    async def start_values(self, session, request):
        """Pushes as many replaceable Value as the id says at once; they grow. Answers when the last one is accepted."""
        for number in range(int(parse(request.payload).id)):
            await session.push(SERVICE + "Value", chat(number, "x" * number), replaceable=True)
        return b""

    async def behind(self, session, request):
        """Pushes a Slow, and as many News as the id says; answers when all but one frame are acknowledged."""
        await session.push(SERVICE + "Slow", chat(0))
        for number in range(int(parse(request.payload).id)):
            await session.push(SERVICE + "News", chat(number))
        lane = session.ordinary_out
        while lane.waiting or len(lane.kept) > 1:
            await session.change()
        return b""

    async def blanks(self, session, request):
        """Loses a connection with as many News as the id says, which expire, and with one that does not: the last."""
        link, number = session.link, int(parse(request.payload).id)
        link.is_muted = True
        for expiring in range(number):
            await session.push(SERVICE + "News", chat(expiring, padding(expiring)), lifetime=0.05)
        await session.push(SERVICE + "News", chat(number))
        await asyncio.sleep(0.1)
        link.abort()
        await session.processed()
        return chat(session.counts["blanks_sent"])

    async def drain(self, session, request):
        """Says that it goes away, pushes News after that, and answers when a request that hangs has ended."""
        session.link.say_goodbye(DRAINING, "going away", pause=1)
        await session.push(SERVICE + "News", request.payload)
        return await self.await_end(session, request)

    async def overload(self, session, request):
        """The next push is not taken, nor anything behind it: the connection drains and is closed."""
        session.overloads += 1
        return b""

    async def usurp(self, session, request):
        """As if another connection had taken the session."""
        session.link.say_goodbye(REPLACED, "a newer connection has the session")

    async def unknown(self, session, request):
        """Sends frames of unknown kinds and with unknown fields, and a News; answers when all is processed."""
        for data in (UNKNOWN_ORDINARY, UNKNOWN_URGENT):
            await enter_unknown(session, data)
        session.link.send(UNKNOWN_UNPLACED)
        session.link.send(b"")
        # A known field of another wire type gives no place.
        session.link.send(bytes([8 << 3, 1]))
        await session.push(SERVICE + "News", chat(1) + UNKNOWN_UNPLACED)
        await session.processed()
        return b""

    async def late(self, session, request):
        """Sends frames for requests that nobody knows; answers when all is processed."""
        enter_late_frames(session)
        await session.processed()
        return b""

    async def ask(self, session, request):
        """Asks the client, and answers with the status of that."""
        try:
            await session.call(SERVICE + "Question", request.payload)
            return chat(0)
        except Status as status:
            return chat(status.code, status.message)

    async def ask_collect(self, session, request):
        """Asks the client to Collect as many parts as the id says, and answers with its reply."""
        async with session.open(SERVICE + "Collect", sends_parts=True, expects_parts=False) as call:
            for number in range(int(parse(request.payload).id)):
                await call.send(chat(number, padding(number)))
            await call.end()
            return await call.response

    async def ask_converse(self, session, request):
        """Asks the client to Converse, and answers with the count and the checksum of the parts that came back."""
        ids = await converse_with(session, int(parse(request.payload).id))
        return chat(len(ids), checksum(ids))

    async def ask_count(self, session, request):
        """Asks the client to Count, and takes no part before `Release`; answers with the count of the parts."""
        async with session.open(SERVICE + "Count", request.payload) as call:
            await self.released.wait()
            self.released.clear()
            ids = [parse(part).id async for part in call]
            await call.response
            return chat(len(ids))

    async def ask_time_left(self, session, request):
        """Asks for TimeLeft with 60 s over a connection that is lost after 0.3 s; answers with the reply."""
        link = session.link
        link.is_muted = True
        asyncio.get_running_loop().call_later(0.3, link.abort)
        return await session.call(SERVICE + "TimeLeft", chat(0), timeout=60)

    async def ask_and_cancel(self, session, request):
        """Asks the client to Converse, and cancels that after the first part that comes back."""
        async with session.open(SERVICE + "Converse", sends_parts=True) as call:
            await call.send(chat(1))
            return await call.take()

    async def ping(self, session, request):
        await session.ping()
        return b""

    async def unplaced(self, session, request):
        await session.push_unplaced(SERVICE + "News", request.payload)
        return b""

    @takes_parts
    async def unplaced_parts(self, session, request):
        """Answers each part, placed or not, with an unplaced part."""
        async for part in request:
            request.send_unplaced(part)
        return b""

    async def wrong_form(self, session, request):
        """Answers with a part, though the caller may expect none."""
        await request.send(chat(1))
        return b""

    async def tell(self, session, request):
        """Pushes the News to the session whose name is the text. The id says whether there is one."""
        other = self.server.named(parse(request.payload).text)
        if other:
            await other.push(SERVICE + "News", request.payload)
        return chat(int(bool(other)))

    def noting_the_end(self, note):
        return EndNote(self, note)

    # Pushes

    async def note(self, session, push):
        if session.is_forgetful:
            await asyncio.sleep(0.001)  # So that there is something to forget.
        self.record.notes.append(parse(push.payload).id)
        session.notify()

    async def value(self, session, push):
        self.record.values.append(parse(push.payload).id)

    async def block(self, session, push):
        """Never returns."""
        await asyncio.Event().wait()

    async def cut(self, session, push):
        """Loses the connection when all that was sent is acknowledged."""
        while any(lane.kept for lane, _ in session.lanes):
            await session.change()
        session.link.abort()

    async def forget(self, session, push):
        """The session is forgotten and its connection lost."""
        link = session.link
        self.server.sessions.pop(session.id, None)
        link.abort()
        await asyncio.Event().wait()


class EndNote:
    """Notes that a request was ended before it was answered."""

    def __init__(self, methods, note):
        self.methods, self.note = methods, note

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        if kind and issubclass(kind, asyncio.CancelledError):
            self.methods.record.ended.append(self.note)
            self.methods.ended.set()


async def converse_with(session, number):
    """Sends parts and takes them back at the same time. Returns the ids of those that came back."""
    async with session.open(SERVICE + "Converse", sends_parts=True) as call:

        async def send():
            for part in range(number):
                await call.send(chat(part, padding(part)))
            await call.end()

        sending = asyncio.create_task(send())
        try:
            ids = [parse(part).id async for part in call]
            await call.response
        finally:
            sending.cancel()
        return ids


def enter_late_frames(session):
    """Frames for requests that nobody knows, which break no rule."""
    serial = 4_000_000_000
    for kind, message in (
        ("request_part", RequestPart(serial=serial, payload=b"late")), ("request_part", RequestPart(serial=0)),
        ("request_end", RequestEnd(serial=serial)), ("response_part", ResponsePart(serial=serial, payload=b"late")),
        ("response_part", ResponsePart(serial=0)), ("response", Response(serial=serial, status=5)),
        ("urgent_response", Response(serial=serial)), ("urgent_response", Response()),
        ("cancel", Cancel(serial=serial)), ("cancel", Cancel()),
    ):
        session.enter(Entry(kind, message))
    for field in ("method", "request", "response"):
        frame = Frame()
        setattr(frame.credit, field, serial)
        frame.credit.bytes = 1 << 40
        session.link.send_frame(frame)
    frame = Frame()
    frame.acknowledgement.SetInParent()
    session.link.send_frame(frame)
    for kind, message in (
        ("unplaced_request_part", RequestPart(serial=serial)), ("unplaced_response_part", ResponsePart(serial=serial)),
    ):
        session.send_unplaced(kind, message, None)
