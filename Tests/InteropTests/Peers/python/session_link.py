"""One connection of a session, and how a client and a server have several."""

import asyncio
import os
import random
import sys
import time
from dataclasses import dataclass

from session import Overloaded, Session
from session_messages import (
    CLOSED, DRAINING, FULL, GOODBYE_TEXT_LIMIT, OPENING_FRAME_LIMIT, REFUSED, REPLACED, VERSION, VIOLATION, Frame,
    Terms, Violation, delimited, parse,
)

OPENING_SECONDS = 10
# A longer pause in a goodbye counts as this one.
LONGEST_PAUSE = 60


@dataclass
class Cut:
    """How many bytes go over a connection before it is lost, mostly in the midst of a frame."""
    sent: int
    received: int


class Cuts:
    """Cuts the first connections, each after another number of bytes."""

    def __init__(self, count, seed=1):
        self.source, self.left, self.made = random.Random(seed), count, 0

    def next(self):
        if self.left == 0:
            return None
        self.left -= 1
        sent, received = self.source.randint(1, 20_000), self.source.randint(1, 20_000)
        # Mostly one of the two comes first: a few connections are lost in hello or welcome.
        if self.source.random() < 0.2:
            sent = self.source.randint(1, 70)
        return Cut(sent, received)


class Link:
    """Frames on a connection, each behind its length."""

    def __init__(self, reader, writer, cuts=None, limit=OPENING_FRAME_LIMIT):
        self.reader, self.writer, self.limit = reader, writer, limit
        self.cuts, self.cut = cuts, cuts.next() if cuts else None
        self.sent = self.received = 0
        self.is_open = True
        # Sent frames are lost on the way.
        self.is_muted = False
        # A task that waits for the next frame.
        self.receiving = None

    async def receive(self):
        """The next frame that is no ping; None when the connection has ended."""
        if receiving := self.receiving:
            self.receiving = None
            return await receiving
        return await self.receive_and_answer_pings()

    async def wait_for_frame(self, seconds):
        """Answers pings meanwhile. Whether a frame has come, or the end, that `receive` returns."""
        self.receiving = self.receiving or asyncio.create_task(self.receive_and_answer_pings())
        done, _ = await asyncio.wait([self.receiving], timeout=max(0, seconds))
        return bool(done)

    async def receive_and_answer_pings(self):
        while received := await self.receive_any():
            if received.kind != "ping":
                return received
            frame = Frame()
            frame.pong.number = received.message.number
            self.send_frame(frame)
        return None

    async def receive_any(self):
        try:
            length = await self.receive_length()
            if length > self.limit:
                raise Violation(f"a frame of {length} bytes is longer than {self.limit}")
            data = await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self.received += length + 1
        if not self.is_open:
            return None
        if self.cut and self.received > self.cut.received:
            self.cuts.made += 1
            self.abort()
            return None
        return parse(data)

    async def receive_length(self):
        length = 0
        for shift in range(0, 35, 7):
            byte = (await self.reader.readexactly(1))[0]
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                return length
        raise Violation("a length has more than 5 bytes")

    def send_frame(self, frame):
        self.send(frame.SerializeToString())

    def send(self, data):
        """Sends a frame, given without its length."""
        # The transport may know of a loss before the reader does.
        if not self.is_open or self.writer.is_closing():
            self.is_open = False
            return
        if self.is_muted:
            return
        data = delimited(data)
        if self.cut and self.sent + len(data) > self.cut.sent:
            self.writer.write(data[:self.cut.sent - self.sent])
            self.cuts.made += 1
            self.close()
            return
        self.sent += len(data)
        self.writer.write(data)

    async def drain(self):
        try:
            await self.writer.drain()
        except ConnectionError:
            pass  # The reader sees it, too.

    def abort(self):
        self.is_open = False
        self.writer.transport.abort()

    def close(self):
        """What was written still goes out."""
        self.is_open = False
        self.writer.close()

    def say_goodbye(self, code, message="", pause=0):
        frame = Frame()
        frame.goodbye.code, frame.goodbye.message = code, message[:GOODBYE_TEXT_LIMIT]
        frame.goodbye.pause_milliseconds = pause
        self.send_frame(frame)
        if code != DRAINING:
            self.close()


async def carry(session, link):
    """Runs a session on a connection until that ends, and returns the goodbye with which it did, if there was one."""
    writer = asyncio.create_task(session.write(link))
    try:
        while link.is_open and (received := await link.receive()):
            if session.link is not link:
                return None  # A newer connection has it.
            if received.kind != "goodbye":
                session.receive(received)
            elif received.message.code in (CLOSED, REPLACED, REFUSED, VERSION, VIOLATION, FULL):
                return received.message
            else:  # Codes of a later version mean the same as DRAINING.
                session.draining, session.pause = True, pause_of(received.message)
                session.notify()
            if session.draining and not session.waits_for_responses and session.is_acknowledged:
                session.send_acknowledgement()
                return None
        return None
    except Violation as violation:
        link.say_goodbye(VIOLATION, str(violation))
        raise
    except Overloaded:
        link.say_goodbye(DRAINING, "too much has come", pause=random.randint(1, 20))
        return None
    finally:
        writer.cancel()
        link.close()
        session.detach(link)


def pause_of(goodbye):
    return min(goodbye.pause_milliseconds / 1000, LONGEST_PAUSE)


class GoodbyeError(Exception):
    def __init__(self, goodbye):
        super().__init__(f"goodbye {goodbye.code}: {goodbye.message}")
        self.code, self.message = goodbye.code, goodbye.message


class Client:
    def __init__(
        self, port, requests=None, pushes=None, terms=None, cuts=None, name="", metadata=None, versions=(1, 1),
        is_forgetful=False,
    ):
        self.session = Session(terms or Terms(), requests or {}, pushes or {}, is_forgetful)
        self.port, self.cuts, self.name, self.metadata, self.versions = port, cuts, name, metadata or {}, versions
        self.attempt = 0
        # Of each welcome.
        self.resumed = []
        self.in_doubt = []
        # Of both sides.
        self.violations = []
        # For one opening: a hello in place of our own.
        self.next_hello = None
        self.leaves_at_once = False

    async def __aenter__(self):
        self.running = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, kind, error, trace):
        """Leaves the session when everything that was accepted is processed."""
        session = self.session
        while not kind and not self.running.done():
            if session.link and (session.is_processed or self.leaves_at_once):
                session.send_acknowledgement()
                session.link.say_goodbye(CLOSED)
                break
            await session.change()
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        if self.violations and not kind:
            raise AssertionError(f"rules were broken: {self.violations}")

    async def run(self):
        """Connects as often as it takes. Ends with the goodbye after which a client does not come back."""
        try:
            while True:
                goodbye = await self.connect()
                if goodbye and goodbye.code in (CLOSED, REPLACED, REFUSED, VERSION):
                    raise GoodbyeError(goodbye)
                if goodbye and goodbye.code == VIOLATION:
                    self.begin_another(f"goodbye: {goodbye.message}")
                elif goodbye:
                    await asyncio.sleep(pause_of(goodbye))
                elif self.session.draining:
                    await asyncio.sleep(self.session.pause)
        except Exception as error:
            self.session.fail_all(error)
            raise

    def begin_another(self, violation):
        """The session is over with a violation, and the next hello begins another one."""
        print(f"A rule was broken: {violation}", file=sys.stderr)
        self.violations.append(violation)
        self.in_doubt += self.session.lose()

    async def connect(self):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except ConnectionError:
            await asyncio.sleep(0.05)
            return None
        link = Link(reader, writer, self.cuts, self.session.offer.maximum_frame)
        link.send_frame(self.hello())
        try:
            answer = await asyncio.wait_for(self.wait_for_answer(link), OPENING_SECONDS)
        except (TimeoutError, Violation):
            # Anything but a peer ends only this connection.
            answer = None
        if not answer or answer.kind == "goodbye":
            link.close()
            if not answer:
                await asyncio.sleep(0.01)
            return answer and answer.message
        try:
            self.enter(link, answer)
            return await carry(self.session, link)
        except Violation as violation:
            link.say_goodbye(VIOLATION, str(violation))
            self.begin_another(str(violation))
            return None

    def enter(self, link, answer):
        session, welcome = self.session, answer.message
        if not self.versions[0] <= welcome.version <= self.versions[1]:
            raise Violation(f"version {welcome.version} was not offered")
        if len(welcome.session_id) != 16 or len(welcome.token) != 16:
            raise Violation("session_id and token do not have 16 bytes each")
        if answer.has_too_many_entries:
            raise Violation("the welcome has too many entries")
        if welcome.resumed and not session.id:
            raise Violation("a session was resumed that the hello did not name")
        terms = Terms.of(welcome.terms)
        if welcome.resumed:
            session.resume(welcome.progress)
        elif session.id:
            self.in_doubt += session.lose()
        session.id, session.token = welcome.session_id, welcome.token
        self.resumed.append(welcome.resumed)
        session.attach(link, terms)

    def hello(self):
        self.attempt += 1
        session, hello = self.session, (frame := Frame()).hello
        hello.minimum_version, hello.maximum_version = self.versions
        hello.session_id, hello.token = session.id, session.token
        hello.attempt, hello.name = self.attempt, self.name
        hello.metadata.update(self.metadata)
        session.offer.fill(hello.terms)
        if session.id:
            session.fill_progress(hello.progress)
        return frame

    async def wait_for_answer(self, link):
        """A welcome or a goodbye. None: the connection brings neither."""
        while link.is_open and (received := await link.receive()):
            if received.kind in ("welcome", "goodbye"):
                return received
            if received.kind != "pong":
                return None
        return None


class Server:
    """Prints its port, and keeps its sessions until it is told to forget them."""

    def __init__(
        self, requests=None, pushes=None, terms=None, cuts=None, maximum_sessions=1_000, version=1, is_forgetful=False,
        kept_seconds=120, opening_delay=0,
    ):
        self.version, self.is_forgetful = version, is_forgetful
        self.requests, self.pushes, self.terms, self.cuts = requests or {}, pushes or {}, terms or Terms(), cuts
        self.maximum_sessions, self.kept_seconds, self.opening_delay = maximum_sessions, kept_seconds, opening_delay
        self.sessions = {}

    async def serve(self):
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        print(f"port {server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()

    async def accept(self, reader, writer):
        link = Link(reader, writer, self.cuts)
        try:
            received = await asyncio.wait_for(link.receive_any(), OPENING_SECONDS)
        except (TimeoutError, Violation):
            received = None  # What is no frame ends the connection without a word.
        if not received:
            link.close()
            return
        try:
            if received.kind != "hello":
                raise Violation("the first frame is no hello")
            if session := await self.welcome(link, received):
                await self.run(session, link)
        except Violation as violation:
            print(f"The client broke the rules in its hello: {violation}", file=sys.stderr)
            link.say_goodbye(VIOLATION, str(violation))

    async def run(self, session, link):
        try:
            goodbye = await carry(session, link)
        except Violation as violation:
            print(f"The client broke the rules: {violation}", file=sys.stderr)
            self.forget(session)
            return
        if goodbye and goodbye.code in (CLOSED, VIOLATION):
            self.forget(session)
        elif not session.link:
            attempt = session.attempt
            await asyncio.sleep(self.kept_seconds)
            if session.attempt == attempt and not session.link:
                self.forget(session)

    async def welcome(self, link, received):
        """Decides on a hello. None: it was answered with a goodbye, or the connection is lost."""
        hello = received.message
        if received.has_too_many_entries:
            raise Violation("the hello has too many entries")
        terms = Terms.of(hello.terms)
        if not hello.minimum_version <= self.version <= hello.maximum_version:
            return link.say_goodbye(VERSION, f"this is version {self.version}")
        if self.opening_delay and not await self.wait_to_decide(link):
            return None
        if hello.metadata.get("credentials") == "wrong":
            return link.say_goodbye(REFUSED, "wrong credentials")
        session = self.sessions.get(hello.session_id)
        resumed = bool(session and session.token == hello.token and hello.attempt)
        if resumed:
            if hello.attempt <= session.attempt:
                return link.say_goodbye(REPLACED, "a later hello was first")
            try:
                session.resume(hello.progress)
            except Violation:
                self.forget(session)
                raise
            if session.link:
                session.link.say_goodbye(REPLACED, "a newer connection has the session")
        elif len(self.sessions) >= self.maximum_sessions:
            return link.say_goodbye(FULL, "too many sessions", pause=random.randint(1, 20))
        else:
            session = Session(self.terms, self.requests, self.pushes, self.is_forgetful)
            session.id, session.token = os.urandom(16), os.urandom(16)
            self.sessions[session.id] = session
        session.attempt = hello.attempt
        if hello.name and (earlier := self.named(hello.name)):
            earlier.name = ""
        session.name = hello.name

        answer = (frame := Frame()).welcome
        answer.version, answer.resumed = self.version, resumed
        answer.session_id, answer.token = session.id, session.token
        answer.kept_milliseconds = int(self.kept_seconds * 1000)
        answer.metadata["peer"] = "python"
        session.offer.fill(answer.terms)
        if resumed:
            session.fill_progress(answer.progress)
        link.send_frame(frame)
        link.limit = session.offer.maximum_frame
        session.attach(link, terms)
        return session

    async def wait_to_decide(self, link):
        """Answers pings while it waits. False: the connection is lost."""
        end = time.monotonic() + self.opening_delay
        while await link.wait_for_frame(end - time.monotonic()):
            received = await link.receive()
            if not received:
                link.close()
                return False
            if received.kind != "pong":
                raise Violation("a frame came before the welcome")
        return True

    def named(self, name):
        return next((session for session in self.sessions.values() if session.name == name), None)

    def forget(self, session):
        if self.sessions.pop(session.id, None):
            session.end()
            if session.link:
                session.link.close()
