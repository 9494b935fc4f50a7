"""One connection of a session, and how a client and a server have several."""

import asyncio
import os
import random
import sys
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from session import Offer, Session
from session_lanes import Violation
from session_messages import (
    CLOSED, DEFAULT_FRAME_LIMIT, DRAINING, FULL, REFUSED, REPLACED, VERSION, VIOLATION, Frame, delimited,
)

OPENING_SECONDS = 10


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
        # One of the two comes first nearly always: a few connections are lost in hello or welcome.
        if self.source.random() < 0.2:
            sent = self.source.randint(1, 70)
        return Cut(sent, received)


class Link:
    """Frames on a connection, each behind its length."""

    def __init__(self, reader, writer, cuts=None, limit=DEFAULT_FRAME_LIMIT):
        self.reader, self.writer, self.limit = reader, writer, limit
        self.cuts, self.cut = cuts, cuts.next() if cuts else None
        self.sent = self.received = 0
        self.is_open = True

    async def receive(self):
        """The next frame and its length; None when the connection has ended."""
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
            self.lose(politely=False)
            return None
        try:
            return Frame.FromString(data), length
        except DecodeError as error:
            raise Violation(f"a frame is no message: {error}") from None

    async def receive_length(self):
        length = 0
        for shift in range(0, 35, 7):
            byte = (await self.reader.readexactly(1))[0]
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                return length
        raise Violation("a length has more than 5 bytes")

    def send(self, frame):
        # The transport knows of a loss before who reads does.
        if not self.is_open or self.writer.is_closing():
            self.is_open = False
            return
        data = delimited(frame)
        if self.cut and self.sent + len(data) > self.cut.sent:
            self.writer.write(data[:self.cut.sent - self.sent])
            self.lose(politely=True)
            return
        self.sent += len(data)
        self.writer.write(data)

    async def drain(self):
        try:
            await self.writer.drain()
        except ConnectionError:
            pass  # Who reads sees it too.

    def lose(self, politely):
        self.cuts.made += 1
        if politely:
            self.close()
        else:
            self.abort()

    def abort(self):
        self.is_open = False
        self.writer.transport.abort()

    def close(self):
        """What was written still goes out."""
        self.is_open = False
        self.writer.close()

    def say_goodbye(self, code, message="", pause=0):
        frame = Frame()
        frame.goodbye.code, frame.goodbye.message, frame.goodbye.pause_milliseconds = code, message, pause
        self.send(frame)
        if code != DRAINING:
            self.close()


async def carry(session, link):
    """Runs a session on a connection until that ends, and returns the goodbye with which it did, if there was one."""
    writer = asyncio.create_task(session.write(link))
    try:
        while link.is_open and (received := await link.receive()):
            frame, length = received
            if session.link is not link:
                return None  # A newer connection has it.
            if not frame.HasField("goodbye"):
                session.receive(frame, length)
            elif frame.goodbye.code == DRAINING:
                session.draining, session.pause = True, frame.goodbye.pause_milliseconds
                session.notify()
            else:
                return frame.goodbye
            if session.draining and not session.waits_for_responses:
                return None
        return None
    except Violation as violation:
        link.say_goodbye(VIOLATION, str(violation))
        raise
    finally:
        writer.cancel()
        link.close()
        session.detach(link)


class GoodbyeError(Exception):
    def __init__(self, goodbye):
        super().__init__(f"goodbye {goodbye.code}: {goodbye.message}")
        self.code, self.message = goodbye.code, goodbye.message


class Client:
    def __init__(
        self, port, requests=None, pushes=None, offer=None, cuts=None, name="", metadata=None, versions=(1, 1),
        is_forgetful=False,
    ):
        self.session = Session(offer or Offer(), requests or {}, pushes or {}, is_forgetful)
        self.port, self.cuts, self.name, self.metadata, self.versions = port, cuts, name, metadata or {}, versions
        self.attempt = 0
        # Of each welcome.
        self.resumed = []
        self.in_doubt = []

    async def __aenter__(self):
        self.running = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, kind, error, trace):
        """Leaves the session when everything that was accepted is processed."""
        if not kind and not self.running.done():
            await self.session.processed()
            link = self.session.link
            link.send(self.session.stamp(Frame()))
            link.say_goodbye(CLOSED)
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)

    async def run(self):
        """Connects as often as it takes. Ends with the goodbye after which a client does not come back."""
        try:
            while True:
                goodbye = await self.connect()
                if goodbye and goodbye.code in (FULL, DRAINING):
                    await asyncio.sleep(goodbye.pause_milliseconds / 1000)
                elif goodbye:
                    raise GoodbyeError(goodbye)
                elif self.session.draining:
                    await asyncio.sleep(self.session.pause / 1000)
        except Exception as error:
            self.session.fail_all(error)
            raise

    async def connect(self):
        try:
            link = Link(*await asyncio.open_connection("127.0.0.1", self.port), self.cuts)
        except ConnectionError:
            await asyncio.sleep(0.05)
            return None
        link.send(self.hello())
        try:
            answer = await asyncio.wait_for(self.wait_for_welcome(link), OPENING_SECONDS)
        except TimeoutError:
            answer = None
        if answer is None or answer.HasField("goodbye"):
            link.close()
            return answer and answer.goodbye
        try:
            self.enter(link, answer.welcome)
        except Violation as violation:
            link.say_goodbye(VIOLATION, str(violation))
            raise
        return await carry(self.session, link)

    def enter(self, link, welcome):
        session = self.session
        is_known = bool(session.id)
        session.id, session.token = welcome.session_id, welcome.token
        self.resumed.append(welcome.resumed)
        if welcome.resumed:
            session.resume(welcome)
        elif is_known:
            self.in_doubt += session.lose()
        session.attach(link, welcome)

    def hello(self):
        self.attempt += 1
        session, hello = self.session, (frame := Frame()).hello
        hello.minimum_version, hello.maximum_version = self.versions
        hello.session_id, hello.token = session.id, session.token
        hello.attempt, hello.name = self.attempt, self.name
        hello.metadata.update(self.metadata)
        session.offer.fill(hello)
        if session.id:
            session.describe_progress(hello)
        return frame

    async def wait_for_welcome(self, link):
        """The frame with a welcome or a goodbye, or None."""
        while link.is_open and (received := await link.receive()):
            frame, _ = received
            if frame.WhichOneof("kind") in ("welcome", "goodbye"):
                return frame
            answer_ping(link, frame)
        return None


class Server:
    """Prints its port, and keeps its sessions until it is told to forget them."""

    def __init__(
        self, requests=None, pushes=None, offer=None, cuts=None, maximum_sessions=1_000, version=1, is_forgetful=False
    ):
        self.version, self.is_forgetful = version, is_forgetful
        self.requests, self.pushes, self.offer, self.cuts = requests or {}, pushes or {}, offer or Offer(), cuts
        self.maximum_sessions = maximum_sessions
        self.sessions = {}
        self.links = set()

    async def serve(self):
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        print(f"port {server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()

    async def accept(self, reader, writer):
        link = Link(reader, writer, self.cuts)
        try:
            hello = await asyncio.wait_for(self.wait_for_hello(link), OPENING_SECONDS)
            session = hello and self.welcome(link, hello)
        except TimeoutError:
            session = None
        except Violation as violation:
            print(f"The client broke the rules in its hello: {violation}", file=sys.stderr)
            link.say_goodbye(VIOLATION, str(violation))
            return
        if not session:
            link.close()
            return
        try:
            goodbye = await carry(session, link)
        except Violation as violation:
            print(f"The client broke the rules: {violation}", file=sys.stderr)
            self.forget(session)
        else:
            if goodbye and goodbye.code in (CLOSED, VIOLATION):
                self.forget(session)

    async def wait_for_hello(self, link):
        received = await link.receive()
        if not received:
            return None
        if not received[0].HasField("hello"):
            raise Violation("the first frame is no hello")
        return received[0].hello

    def welcome(self, link, hello):
        """Decides on a hello. None: it was answered with a goodbye."""
        if not hello.minimum_version <= self.version <= hello.maximum_version:
            return link.say_goodbye(VERSION, f"this is version {self.version}")
        if hello.metadata.get("credentials") == "wrong":
            return link.say_goodbye(REFUSED, "wrong credentials")
        offer = Offer.of(hello)
        session = self.sessions.get(hello.session_id)
        resumed = session is not None and session.token == hello.token
        if resumed:
            if hello.attempt <= session.attempt:
                return link.say_goodbye(REPLACED, "a later hello was first")
            session.resume(hello)
            if session.link:
                session.link.say_goodbye(REPLACED, "a newer connection has the session")
        elif len(self.sessions) >= self.maximum_sessions:
            return link.say_goodbye(FULL, "too many sessions", pause=random.randint(1, 20))
        else:
            session = Session(self.offer, self.requests, self.pushes, self.is_forgetful)
            session.id, session.token = os.urandom(16), os.urandom(16)
            self.sessions[session.id] = session
        session.attempt = hello.attempt

        answer = (frame := Frame()).welcome
        answer.version, answer.session_id, answer.token, answer.resumed = 1, session.id, session.token, resumed
        answer.kept_milliseconds = 120_000
        session.offer.fill(answer)
        if resumed:
            session.describe_progress(answer)
        link.send(frame)
        session.attach(link, hello)
        return session

    def forget(self, session):
        if self.sessions.pop(session.id, None):
            session.end()


def answer_ping(link, frame):
    if frame.HasField("ping"):
        pong = Frame()
        pong.pong.number = frame.ping.number
        link.send(pong)
