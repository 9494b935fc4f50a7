"""What the client of `session-peer` does with a server, and expects of it: see ../README.md."""

import asyncio
import contextlib

from messages import ChatMessage
from session_link import Client, Cuts, GoodbyeError, Link
from session_messages import CLOSED, REFUSED, REPLACED, VERSION, Terms
from session_methods import (
    FAILED_PRECONDITION, PADDING, SERVICE, UNKNOWN_ORDINARY, UNKNOWN_UNPLACED, UNKNOWN_URGENT, PeerMethods, by_name,
    chat, checksum, collect, converse, converse_with, count, enter_late_frames, enter_unknown, padding, parse,
    time_left,
)
from session_streams import DEADLINE_EXCEEDED, UNIMPLEMENTED, SessionLost, Status, TooLarge, UnexpectedParts


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


async def expect_error(kind, call):
    try:
        await call
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def ids(number):
    return [str(id) for id in range(number)]


class Inbox:
    """The pushes of a method that came."""

    def __init__(self):
        self.ids = []

    async def __call__(self, session, push):
        if session.is_forgetful:
            await asyncio.sleep(0.001)  # So that there is something to forget.
        self.ids.append(parse(push.payload).id)
        session.notify()

    async def wait(self, session, number):
        while len(self.ids) < number:
            await session.change()


@contextlib.asynccontextmanager
async def connected(port, options, **arguments):
    """A client with the methods that a server may ask, and its session."""
    requests = by_name(collect, converse, count, time_left)
    arguments.setdefault("terms", options.terms)
    async with Client(port, requests, is_forgetful=options.forgetful, **arguments) as client:
        yield client, client.session


async def cut_and_come_back(session):
    """Loses the connection, and waits for the next one."""
    while not session.link:
        await session.change()
    before = session.counts["connections"]
    session.link.abort()
    while session.counts["connections"] == before:
        await session.change()


async def everything_is_sent(session):
    while session.held or any(lane.waiting for lane, _ in session.lanes):
        await session.change()


async def calls(port, options):
    """Each kind of call and push, once."""
    news = Inbox()
    async with connected(port, options, pushes={SERVICE + "News": news}, name="ada") as (_, session):
        reply = await session.call(SERVICE + "Echo", chat(7, "Grüezi"), metadata={"key": "value"})
        require(parse(reply).text == "Grüezi", "the echo differs")

        status = await expect_status(FAILED_PRECONDITION, session.call(SERVICE + "Fail", chat(0, "no")))
        require(status.message == "Grüezi: no", status.message)
        texts = []
        for detail in status.details:
            require(detail.Unpack(message := ChatMessage()), detail.type_url)
            texts.append(message.text)
        require(texts == ["first", "second"], texts)

        async with session.open(SERVICE + "Count", chat(1_000)) as call:
            parts = [parse(part).id async for part in call]
            await call.response
        require(parts == ids(1_000), parts)

        for number in range(100):
            await session.push(SERVICE + "Note", chat(number))
        await session.call(SERVICE + "Start", chat(100))
        await news.wait(session, 100)
        require(news.ids == ids(100), news.ids)

        await expect_status(UNIMPLEMENTED, session.call(SERVICE + "Nothing"))
        await session.push(SERVICE + "Nothing")
        await session.ping()


async def streams(port, options):
    """Streams of the client's and streams both ways, and how they end."""
    async with connected(port, options) as (_, session):
        # A client stream: the parts, their end, and the reply.
        for number in (0, 1, 1_000):
            reply = parse(await collect_with(session, number))
            require(reply.id == str(number) and reply.text == checksum(ids(number)), f"collected {reply}")

        # Both ways: many parts are under way in both directions.
        require(await converse_with(session, 1_000) == ids(1_000), "the conversation differs")

        # One part at a time, and the end after the last answer.
        async with session.open(SERVICE + "Converse", sends_parts=True) as call:
            for number in range(10):
                await call.send(chat(number))
                require(parse(await call.take()).id == str(number), "another part came back")
            await call.end()
            require(await call.take() is None, "a part came after the end")
            await call.response

        # The answer arrives before the end of the parts: the call has ended, and no more parts are sent.
        async with session.open(SERVICE + "Pick", sends_parts=True, expects_parts=False) as call:
            number = 0
            while await call.send(chat(number, PADDING)):
                number += 1
            require(parse(await call.response).id == "0", "another part was picked")
        require(number > 0, "no part was sent")

        # The call is cancelled midway.
        async with session.open(SERVICE + "Converse", sends_parts=True) as call:
            await call.send(chat(1))
            await call.take()
        await session.call(SERVICE + "AwaitEnd", timeout=60)

        # The call times out midway.
        with contextlib.suppress(Status):
            async with session.open(SERVICE + "Converse", sends_parts=True, timeout=0.2) as call:
                await call.send(chat(1))
                while await call.take():
                    pass
            raise AssertionError("the call ended before its time")
        await session.call(SERVICE + "AwaitEnd", timeout=60)

        # The other form of each method.
        await expect_status(UNIMPLEMENTED, session.call(SERVICE + "Collect", chat(1)))
        await expect_status(UNIMPLEMENTED, collect_with(session, 3, "Echo"))
        await expect_error(UnexpectedParts, session.call(SERVICE + "Count", chat(10)))
        require(parse(await session.call(SERVICE + "Echo", chat(1))).id == "1", "the echo differs")


async def collect_with(session, number, method="Collect"):
    async with session.open(SERVICE + method, sends_parts=True, expects_parts=False) as call:
        for part in range(number):
            await call.send(chat(part, padding(part)))
        await call.end()
        return await call.response


async def credit(port, options):
    """Streams that nobody reads wait for credit, hold up nothing else, and go on when they are read."""
    async with connected(port, options) as (client, session):
        await session.call(SERVICE + "Echo", chat(0))
        # More than any credit.
        number = max(2_000, session.other.credit // 200, session.terms.credit // 200)
        # Pushes whose handler never returns.
        blocked = asyncio.create_task(push_for_ever(session))
        # Parts that the handler does not take.
        hoard = asyncio.create_task(collect_with(session, number, "Hoard"))
        await session.call(SERVICE + "AwaitHanging")
        # Parts of an answer that this side does not take.
        async with session.open(SERVICE + "Count", chat(number)) as call:
            block = session.push_stream(SERVICE + "Block")
            hoarded = next(call for call in session.calls.values() if call.entry.method == SERVICE + "Hoard").stream
            while block.has_credit or hoarded.has_credit or call.grants.received < call.grants.told:
                await session.change()
            for note in range(100):
                await session.push(SERVICE + "Note", chat(note))
                require(parse(await session.call(SERVICE + "Echo", chat(note))).id == str(note), "the echo differs")
            require(not block.has_credit and not hoarded.has_credit, "credit was told for messages that nobody took")

            # Granted credit is stated again, and used credit stays used.
            await cut_and_come_back(session)
            require(not block.has_credit, "the credit began anew")
            require(client.resumed == [False, True], client.resumed)

            require([parse(part).id async for part in call] == ids(number), "the stream differs")
            await call.response
        await session.call(SERVICE + "Release")
        require(parse(await hoard).text == checksum(ids(number)), "the hoard differs")
        require(session.counts["credits_received"] > 0, "no credit was told")

        # A message larger than the credit may be sent as long as any credit is left.
        if min(options.bytes, session.other.bytes) > (300 << 10) + 64:
            large = chat(1, "x" * (300 << 10))
            require(await session.call(SERVICE + "Echo", large) == large, "the echo differs")
            async with session.open(SERVICE + "Converse", sends_parts=True) as call:
                for _ in range(3):
                    await call.send(large)
                    require(await call.take() == large, "the part differs")
                await call.end()
                await call.response
        blocked.cancel()
        client.leaves_at_once = True


async def push_for_ever(session):
    while True:
        await session.push(SERVICE + "Block", chat(0, PADDING))


async def ranges(port, options):
    """A slow handler holds back the acknowledgement of its own message only, also over the next connection."""
    async with connected(port, options) as (client, session):
        await session.push(SERVICE + "Block", chat(0))
        lane = session.ordinary_out
        for _ in range(2):
            for number in range(100):
                await session.push(SERVICE + "Note", chat(number))
            while lane.waiting or len(lane.kept) > 1:
                await session.change()
            ranges = session.counts["ranges_received"]
            await cut_and_come_back(session)
            # The credits are sent again after the opening.
            while session.counts["ranges_received"] == ranges:
                await session.change()
        require(lane.processed == 1, f"{lane.processed} places were processed before the one of the slow handler")
        await session.call(SERVICE + "Echo", chat(1))
        client.leaves_at_once = True


async def blanks(port, options):
    """What is not worth sending again leaves blanks: expired and replaced messages, and cancelled requests."""
    async with connected(port, options) as (_, session):
        await session.call(SERVICE + "Echo", chat(0))
        await session.push(SERVICE + "Note", chat(0))
        await session.push(SERVICE + "Value", chat(0), replaceable=True)
        await session.processed()
        for turn in range(1, 4):
            link = session.link
            link.is_muted = True
            for number in range(10):
                await session.push(SERVICE + "Note", chat(-1, padding(number)), lifetime=0.05)
            await session.push(SERVICE + "Value", chat(-1), replaceable=True)
            cancelled = asyncio.create_task(collect_with(session, 5))
            await everything_is_sent(session)
            while session.calls == {}:
                await session.change()
            await asyncio.sleep(0.1)
            cancelled.cancel()
            await session.push(SERVICE + "Note", chat(turn))
            await session.push(SERVICE + "Value", chat(turn), replaceable=True)
            await everything_is_sent(session)
            before = session.counts["blanks_sent"]
            await cut_and_come_back(session)
            await session.processed()
            # 10 notes and a value, and the request, its parts and their end.
            require(session.counts["blanks_sent"] - before == 18, session.counts)
            await session.call(SERVICE + "Echo", chat(turn))
        # Blanks give back their credit.
        used = session.push_stream(SERVICE + "Note").used
        require(used < 1_000, f"{used} of credit were used")


async def values(port, options):
    """Replaceable messages: the last one comes, and older ones that were not sent do not."""
    async with connected(port, options) as (_, session):
        for number in range(10_000):
            await session.push(SERVICE + "Value", chat(number, "x" * (number % 3_000)), replaceable=True)
            if number % 1_000 == 999:
                await cut_and_come_back(session)
        await session.processed()
        require(session.counts["overwritten"] > 0, "no value was overwritten")


async def timeouts(port, options):
    """A request that is sent again says what is left of its time."""
    async with connected(port, options) as (_, session):
        await session.call(SERVICE + "Echo", chat(0))
        left = int(parse(await session.call(SERVICE + "TimeLeft", chat(0), timeout=30)).id)
        require(20_000 < left <= 30_000, f"{left} ms were left of 30 s")
        require(parse(await session.call(SERVICE + "TimeLeft", chat(0))).id == "0", "there was a limit")
        link = session.link
        link.is_muted = True
        asking = asyncio.create_task(session.call(SERVICE + "TimeLeft", chat(0), timeout=60))
        expiring = asyncio.create_task(session.call(SERVICE + "Hang", chat(0), timeout=0.2))
        await asyncio.sleep(0.5)
        await cut_and_come_back(session)
        left = int(parse(await asking).id)
        require(30_000 < left <= 59_500, f"{left} ms were left of 60 s")
        await expect_status(DEADLINE_EXCEEDED, expiring)
        require(session.counts["blanks_sent"] == 1, "no blank stood for the request whose time was over")
        # More than 49 days count as 49 days.
        left = int(parse(await session.call(SERVICE + "TimeLeft", chat(0), timeout=1e9)).id)
        require((1 << 32) - 10_000 < left < 1 << 32, f"{left} ms were left of 1e9 s")


async def unplaced(port, options):
    """What is sent at most once."""
    news = Inbox()
    async with connected(port, options, pushes={SERVICE + "News": news}) as (_, session):
        await session.call(SERVICE + "Echo", chat(0))
        require(await session.push_unplaced(SERVICE + "Note", chat(1)), "the unplaced push was not sent")
        require(await session.push_unplaced(SERVICE + "Note", chat(2)), "the unplaced push was not sent")
        await session.call(SERVICE + "AwaitNotes", chat(2), timeout=60)
        await session.call(SERVICE + "Unplaced", chat(5))
        await news.wait(session, 1)
        require(news.ids == ["5"], news.ids)
        async with session.open(SERVICE + "UnplacedParts", sends_parts=True) as call:
            while not call.was_sent:
                await session.change()
            for number in range(10):
                require(call.send_unplaced(chat(number)), "the unplaced part was not sent")
                require(parse(await call.take()).id == str(number), "another part came")
            await call.end()
            require(await call.take() is None, "a part came after the end")
            await call.response
            require(not call.send_unplaced(chat(0)), "a part was sent for a call that is over")
        require(session.counts["urgent_responses"] >= 4, "unplaced parts do not take a response out of the urgent lane")


async def serials(port, options):
    """After 2^32 − 1 comes 1, and serials of requests that have not ended are passed over."""
    async with connected(port, options) as (_, session):
        session.last_serial = 2
        hanging = asyncio.create_task(session.call(SERVICE + "Hang"))
        await session.call(SERVICE + "AwaitHanging")
        require(session.last_serial == 4, session.last_serial)
        session.last_serial = (1 << 32) - 3
        for number in range(6):
            require(parse(await session.call(SERVICE + "Echo", chat(number))).id == str(number), "the echo differs")
        # −2, −1, 1, 2, 4 and 5.
        require(session.last_serial == 5, session.last_serial)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        await session.call(SERVICE + "AwaitEnd", timeout=60)


async def terms(port, options):
    """Openings change the terms: windows grow and do not shrink, and the credit stays."""
    news = Inbox()
    first = Terms(frames=10, bytes=8_192, credit=100_000, maximum_requests=2, maximum_frame=8_192)
    async with connected(port, options, pushes={SERVICE + "News": news}, terms=first) as (client, session):
        await session.call(SERVICE + "Start", chat(100))
        for changed in (
            Terms(frames=100, bytes=65_536, credit=200_000, maximum_requests=10, maximum_frame=65_536),
            Terms(frames=1, bytes=4_096, credit=65_536, maximum_requests=0, maximum_frame=4_096),
        ):
            session.offer = changed
            await cut_and_come_back(session)
            await session.call(SERVICE + "Start", chat(100))
            async with session.open(SERVICE + "Count", chat(500)) as call:
                require([parse(part).id async for part in call] == ids(500), "the stream differs")
                await call.response
        require((session.terms.frames, session.terms.bytes) == (100, 65_536), "the window shrank")
        require(session.terms.credit == 100_000, "the credit changed")
        await news.wait(session, 300)
        require(news.ids == 3 * ids(100), news.ids)
        require(client.resumed == [False, True, True], client.resumed)


async def too_large(port, options):
    """A message that does not fit is refused where it is accepted, also when it was accepted before the welcome."""
    async with connected(port, options) as (_, session):
        large = chat(0, "x" * (9 << 20))
        before = asyncio.create_task(session.call(SERVICE + "Echo", large))
        await expect_error(TooLarge, before)
        await expect_error(TooLarge, session.call(SERVICE + "Echo", large))
        await expect_error(TooLarge, session.push(SERVICE + "Note", large))
        await session.push(SERVICE + "Note", chat(1))
        require(parse(await session.call(SERVICE + "Echo", chat(1))).id == "1", "the echo differs")


async def cancels(port, options):
    """Cancels a request that the server works on, and lets another run into its deadline."""
    async with connected(port, options) as (_, session):
        hanging = asyncio.create_task(session.call(SERVICE + "Hang"))
        await session.call(SERVICE + "AwaitHanging")
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        await session.call(SERVICE + "AwaitEnd", timeout=60)
        await expect_status(DEADLINE_EXCEEDED, session.call(SERVICE + "Hang", timeout=0.05))
        await session.call(SERVICE + "AwaitEnd", timeout=60)
        await session.call(SERVICE + "Echo", chat(1))


async def exchange(port, options):
    """Messages both ways over connections that are cut."""
    expected = ids(options.count)
    news, cuts = Inbox(), Cuts(options.cuts, options.seed)
    async with connected(port, options, pushes={SERVICE + "News": news}, cuts=cuts) as (client, session):

        async def note():
            for number in range(options.count):
                await session.push(SERVICE + "Note", chat(number, padding(number)))

        async def ask(first):
            for number in range(first, options.count // 4, 4):
                reply = await session.call(SERVICE + "Echo", chat(number))
                require(parse(reply).id == str(number), "the echo differs")

        async def stream():
            async with session.open(SERVICE + "Count", chat(options.count)) as call:
                require([parse(part).id async for part in call] == expected, "the stream differs")
                await call.response

        async def send_parts():
            reply = parse(await collect_with(session, options.count))
            require(reply.text == checksum(expected), "what was collected differs")

        async def talk():
            require(await converse_with(session, options.count) == expected, "the conversation differs")

        # Before the welcome, the client does not know how many requests the server accepts.
        while not session.other:
            await session.change()
        start = session.call(SERVICE + "Start", chat(options.count))
        await asyncio.gather(start, note(), stream(), send_parts(), talk(), *(ask(first) for first in range(4)))
        await news.wait(session, options.count)
    require(news.ids == expected, "the news differ")
    require(cuts.made == options.cuts, f"{cuts.made} connections were cut")
    # All but the first one; a cut within a welcome does not count.
    require(client.resumed[1:].count(False) == 0, client.resumed)


async def lost(port, options):
    """The server forgets the session while a request hangs, and a push is not processed."""
    news = Inbox()
    async with connected(port, options, pushes={SERVICE + "News": news}) as (client, session):
        await session.push(SERVICE + "Block", chat(0))
        hanging = asyncio.create_task(session.call(SERVICE + "Hang"))
        await session.call(SERVICE + "AwaitHanging")
        # The handler of Block does not return; everything else is acknowledged.
        while len(session.ordinary_out.kept) > 1:
            await session.change()
        await session.push(SERVICE + "Forget", chat(1))
        (result,) = await asyncio.gather(hanging, return_exceptions=True)
        require(isinstance(result, SessionLost), f"the request ended with {result!r}")
        # The methods get new numbers, in another order.
        await session.push(SERVICE + "Note", chat(1))
        await session.call(SERVICE + "Echo", chat(1))
        require(client.resumed == [False, False], client.resumed)
        methods = [entry.method for entry in client.in_doubt]
        require(methods == [SERVICE + "Block", SERVICE + "Forget"], methods)


async def unsent(port, options):
    """What was not sent when the session is forgotten goes to the new one, under its numbers and its credit."""
    async with connected(port, options) as (client, session):
        await session.call(SERVICE + "AwaitNotes", chat(0))
        await session.push(SERVICE + "Forget", chat(1))
        await everything_is_sent(session)
        while session.link:
            await session.change()
        require(client.resumed == [False], "the next connection came too soon")
        # Without a connection, this is accepted for the session that is then lost.
        pushes = [asyncio.create_task(session.push(SERVICE + "Note", chat(number, PADDING))) for number in range(40)]
        collecting = asyncio.create_task(collect_with(session, 10))
        echo = await session.call(SERVICE + "Echo", chat(1))
        require(parse(echo).id == "1", "the echo differs")
        require(parse(await collecting).text == checksum(ids(10)), "what was collected differs")
        await asyncio.gather(*pushes)
        await session.call(SERVICE + "AwaitNotes", chat(40))
        require(client.resumed == [False, False], client.resumed)


async def replaced(port, options):
    """A hello that comes late does nothing to the session; a later connection takes it from the present one."""
    async with connected(port, options) as (client, session):
        await session.call(SERVICE + "Echo", chat(1))
        late = client.hello()
        late.hello.attempt = 1
        answer, _ = await say(port, late)
        require(answer.kind == "goodbye" and answer.message.code == REPLACED, answer)
        for changes in (dict(token=bytes(16)), dict(token=b"short"), dict(attempt=0)):
            stranger = client.hello()
            for name, value in changes.items():
                setattr(stranger.hello, name, value)
            answer, link = await say(port, stranger)
            require(answer.kind == "welcome" and not answer.message.resumed, answer)
            link.close()
        await session.call(SERVICE + "Echo", chat(2))
        answer, link = await say(port, client.hello())
        require(answer.kind == "welcome" and answer.message.resumed, answer)
        await expect_goodbye(REPLACED, client)
        link.close()


async def say(port, hello):
    """The answer to a hello, on a connection of its own."""
    link = Link(*await asyncio.open_connection("127.0.0.1", port), limit=4 << 20)
    link.send_frame(hello)
    return await link.receive(), link


async def expect_goodbye(code, client):
    try:
        await client.running
    except GoodbyeError as goodbye:
        require(goodbye.code == code, str(goodbye))
        return
    raise AssertionError(f"no goodbye {code}")


async def forgetful(port, options):
    """Drops on each return what no handler has begun with: it comes again."""
    options.forgetful = True
    taken, may_go_on = [], asyncio.Event()

    async def take(session, push):
        await may_go_on.wait()
        taken.append(parse(push.payload).id)
        session.notify()

    async with connected(port, options, pushes={SERVICE + "News": take}) as (client, session):
        await session.call(SERVICE + "Start", chat(50))
        while len(session.queued) < 49:
            await session.change()
        for _ in range(3):
            # The last received messages are news.
            await session.processed()
            await asyncio.sleep(0.1)
            await cut_and_come_back(session)
        while len(session.queued) < 49:
            await session.change()
        require(session.counts["dropped"] >= 49, f"{session.counts['dropped']} were dropped")
        may_go_on.set()
        while len(taken) < 50:
            await session.change()
        require(taken == ids(50), taken)
        require(client.resumed == [False, True, True, True], client.resumed)


async def draining(port, options):
    """The server drains: what runs is answered, nothing more begins, and the client comes back."""
    async with connected(port, options) as (client, session):
        hanging = asyncio.create_task(session.call(SERVICE + "Hang"))
        await session.call(SERVICE + "AwaitHanging")
        async with session.open(SERVICE + "Converse", sends_parts=True) as call:
            await call.send(chat(0))
            await call.take()
            last = asyncio.create_task(session.call(SERVICE + "Drain"))
            while not session.draining:
                await session.change()
            late = asyncio.create_task(session.call(SERVICE + "Echo", chat(2)))
            note = asyncio.create_task(session.push(SERVICE + "Note", chat(3)))
            # Parts and the end of an open call continue.
            await call.send(chat(1))
            require(parse(await call.take()).id == "1", "another part came back")
            await call.end()
            require(await call.take() is None, "a part came after the end")
            await call.response
        # This ends running requests, and Drain is answered, because a cancel begins nothing new.
        hanging.cancel()
        await last
        require(not late.done() and not note.done(), "a request or a push began while the server drained")
        await asyncio.gather(late, note)
        await session.processed()
        require(len(client.resumed) == 2 and not client.in_doubt, f"{client.resumed} {client.in_doubt}")


async def overload(port, options):
    """The server cannot keep a push: all that it did not take comes again over the next connection."""
    async with connected(port, options) as (client, session):
        notes = 0
        for turn in range(5):
            await session.call(SERVICE + "Overload")
            for _ in range(50):
                await session.push(SERVICE + "Note", chat(notes))
                notes += 1
            require(parse(await session.call(SERVICE + "Echo", chat(turn))).id == str(turn), "the echo differs")
        await session.processed()
        require(client.resumed == [False] + 5 * [True], client.resumed)


async def refused(port, options):
    async with connected(port, options, metadata={"credentials": "wrong"}) as (client, _):
        await expect_goodbye(REFUSED, client)


async def version(port, options):
    async with connected(port, options, versions=(2, 3)) as (client, _):
        await expect_goodbye(VERSION, client)


async def unknown(port, options):
    """Frames of unknown kinds, without a kind, and with unknown fields."""
    async with connected(port, options) as (client, session):
        for _ in range(20):
            for data in (UNKNOWN_ORDINARY, UNKNOWN_URGENT):
                await enter_unknown(session, data)
        await session.push(SERVICE + "Note", chat(1) + UNKNOWN_UNPLACED)
        await session.processed()
        session.link.send(UNKNOWN_UNPLACED)
        session.link.send(b"")
        # A known field of another wire type gives no place.
        session.link.send(bytes([8 << 3, 1]))
        await session.call(SERVICE + "Echo", chat(2))
        # A client that resumes with versions 1 to 9 uses version 1.
        client.versions = (1, 9)
        await cut_and_come_back(session)
        await session.call(SERVICE + "Echo", chat(3))
        require(client.resumed == [False, True], client.resumed)


async def late(port, options):
    """Frames for requests that nobody knows, and what says nothing."""
    async with connected(port, options) as (_, session):
        await session.call(SERVICE + "Echo", chat(1))
        enter_late_frames(session)
        await session.processed()
        await session.call(SERVICE + "Echo", chat(2))


async def asked(port, options):
    """The server asks: with a payload, with parts, with parts both ways, unread, and cancels."""
    async with connected(port, options) as (_, session):
        require(parse(await session.call(SERVICE + "Ask")).id == str(UNIMPLEMENTED), "the question was answered")
        reply = parse(await session.call(SERVICE + "AskCollect", chat(500)))
        require(reply.id == "500" and reply.text == checksum(ids(500)), "what was collected differs")
        reply = parse(await session.call(SERVICE + "AskConverse", chat(500)))
        require(reply.id == "500" and reply.text == checksum(ids(500)), "the conversation differs")
        counting = asyncio.create_task(session.call(SERVICE + "AskCount", chat(2_000)))
        while not any(not request.stream.has_credit for request in session.running.values()):
            await session.change()
        await session.call(SERVICE + "Echo", chat(1))
        await session.call(SERVICE + "Release")
        require(parse(await counting).id == "2000", "the count differs")
        left = int(parse(await session.call(SERVICE + "AskTimeLeft")).id)
        require(30_000 < left <= 59_700, f"{left} ms were left of 60 s")
        await session.call(SERVICE + "AskAndCancel")
        while session.running:
            await session.change()


async def until_closed(port, options):
    """Has the methods of the server, and serves until the server closes the session. Rules may be broken meanwhile."""
    methods = PeerMethods(Cuts(0))
    async with Client(port, methods.requests, methods.pushes, options.terms) as client:
        await expect_goodbye(CLOSED, client)
        client.violations.clear()


SCENARIOS = {scenario.__name__: scenario for scenario in (
    calls, streams, credit, ranges, blanks, values, timeouts, unplaced, serials, terms, too_large, cancels, exchange,
    lost, unsent, replaced, forgetful, draining, overload, refused, version, unknown, late, asked, until_closed,
)}
