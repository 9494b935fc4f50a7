"""Calls and requests, their streams of parts, and the credit of streams."""

import asyncio
import time
from collections import deque
from typing import Any, NamedTuple

from session_lanes import Entry
from session_messages import SMALLEST_CREDIT, Frame, Violation, load

CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNIMPLEMENTED = 1, 2, 3, 4, 8, 12
# The limit of unplaced messages that wait for one handler; further ones are dropped.
UNPLACED_LIMIT = 256

PACKAGE = "lifeline.session.v1."
Push, Request, RequestPart, RequestEnd, ResponsePart, Response, Cancel, Method = (
    load(PACKAGE + name)
    for name in ("Push", "Request", "RequestPart", "RequestEnd", "ResponsePart", "Response", "Cancel", "Method")
)


class Status(Exception):
    """How a request ended that did not succeed. A handler raises it, and the asker gets it."""

    def __init__(self, code, message="", details=(), metadata=None):
        super().__init__(f"status {code}: {message}")
        self.code, self.message, self.details, self.metadata = code, message, list(details), metadata or {}


class SessionLost(Exception):
    """The session is lost, and with it the response to a request that was sent."""


class UnexpectedParts(Exception):
    """Parts came for a call whose response has none."""


class TooLarge(Exception):
    """The other side takes no frame of this size."""


class Stream:
    """The credit of messages that go out: the pushes of a method, or the parts of one direction of a call."""

    def __init__(self, credit):
        # Keeps the order of messages that wait for credit.
        self.turn = asyncio.Lock()
        # The last message, if a newer one may replace it.
        self.replaceable = None
        self.reset(credit)

    def reset(self, credit):
        self.granted, self.used = credit or SMALLEST_CREDIT, 0

    @property
    def has_credit(self):
        return self.used < self.granted

    def grant(self, total):
        self.granted = max(self.granted, total)


class Grants:
    """The credit that we grant to a stream of the other side. `field` is the one of a credit frame that names it."""

    def __init__(self, field, number, credit):
        self.field, self.number = field, number
        self.initial = self.told = credit
        self.received = self.consumed = 0

    def receive(self, cost):
        if self.received >= self.told:
            raise Violation(f"a message of {self.field} {self.number} is beyond the credit of {self.told}")
        self.received += cost

    def consume(self, cost):
        """Returns whether a grant has to be told now."""
        self.consumed += cost
        total = self.initial + self.consumed
        if 2 * (total - self.told) < self.initial:
            return False
        self.told = total
        return True

    def frame(self):
        frame = Frame()
        setattr(frame.credit, self.field, self.number)
        frame.credit.bytes = self.told
        return frame


class Item(NamedTuple):
    """A push or a part that came. What is unplaced has place 0."""
    place: int
    cost: int
    content: Any
    arrivals: Any


class Arrivals:
    """The pushes of a method, or the parts of a stream, in their order, until a handler takes them."""

    def __init__(self, session, grants):
        self.session, self.grants, self.life = session, grants, session.life
        self.items = deque()
        # The handler's current message.
        self.current = None
        self.is_ended = self.is_closed = False
        self.changed = asyncio.Event()

    def put(self, place, cost, content):
        item = Item(place, cost, content, self)
        if not place and len(self.items) >= UNPLACED_LIMIT:
            return
        if self.is_closed:
            self.finish(item)
            return
        self.items.append(item)
        if place:
            self.session.queued[place] = item
        self.changed.set()

    def end(self):
        """No more will come."""
        self.is_ended = True
        self.changed.set()

    def close(self):
        """Nobody will take any more: what waits is dropped, and so is what comes."""
        self.is_closed = True
        self.end()
        self.finish_current()
        while self.items:
            item = self.items.popleft()
            self.forget(item)
            self.finish(item)

    async def take(self):
        """The next one, or None at the end. The one before is consumed."""
        self.finish_current()
        while not self.items:
            if self.is_ended:
                return None
            self.changed.clear()
            await self.changed.wait()
        self.current = self.items.popleft()
        self.forget(self.current)
        return self.current.content

    async def __aiter__(self):
        while (content := await self.take()) is not None:
            yield content

    def finish_current(self):
        item, self.current = self.current, None
        if item:
            self.finish(item)

    def finish(self, item):
        if item.place and self.life == self.session.life:
            self.session.consume(self.grants, item.cost)
            self.session.finish(self.session.ordinary_in, item.place)

    def forget(self, item):
        if self.life == self.session.life:
            self.session.queued.pop(item.place, None)


class Call:
    """A request of ours. `expects_parts` says whether the response has parts."""

    def __init__(self, session, method, payload, metadata, sends_parts, expects_parts, timeout):
        self.session, self.expects_parts = session, expects_parts
        self.serial = 0
        self.is_over = False
        self.stream = Stream(session.credit)
        self.arrivals = self.grants = None
        self.response = asyncio.get_running_loop().create_future()
        self.response.add_done_callback(lambda response: response.cancelled() or response.exception())
        self.deadline = time.monotonic() + timeout if timeout is not None else None
        message = Request(parts_follow=sends_parts, metadata=metadata or {}, payload=payload)
        self.entry = Entry("request", message, method, owner=self, deadline=self.deadline)

    @property
    def was_sent(self):
        return self.entry.place > 0

    @property
    def is_unwanted(self):
        return self.is_over

    async def send(self, payload, **options):
        """Sends a part. False: it was not sent, as the call is over or a newer part has its place."""
        message = RequestPart(serial=self.serial, payload=payload)
        return await self.session.accept(self.session.part("request_part", message, self, **options), **options)

    def send_unplaced(self, payload):
        """Sends a part at most once. Returns whether it was sent."""
        message = RequestPart(serial=self.serial, payload=payload)
        return not self.is_over and self.session.send_unplaced("unplaced_request_part", message, self.entry)

    async def end(self):
        """Says that no more parts come."""
        entry = Entry("request_end", RequestEnd(serial=self.serial), owner=self)
        return await self.session.accept(entry, turn=self.stream.turn)

    async def take(self):
        """The next part of the response; None at its end."""
        return await self.arrivals.take()

    def __aiter__(self):
        return self.arrivals.__aiter__()

    def cancel(self):
        self.session.leave(self)


class AnsweredRequest:
    """A request of the other side, as its handler sees it."""

    def __init__(self, session, message, method, cost):
        self.session, self.serial, self.method, self.cost = session, message.serial, method, cost
        self.payload, self.metadata = message.payload, dict(message.metadata)
        self.timeout_milliseconds = message.timeout_milliseconds
        self.parts_follow = message.parts_follow
        self.has_ended = False
        self.is_over = self.is_cancelled = self.has_sent_part = False
        self.stream = Stream(session.credit)
        self.grants = Grants("request", self.serial, session.terms.credit)
        self.arrivals = Arrivals(session, self.grants)
        self.task = None

    @property
    def is_unwanted(self):
        return self.is_cancelled

    async def send(self, payload, **options):
        """Sends a part of the response."""
        message = ResponsePart(serial=self.serial, payload=payload)
        self.has_sent_part = True
        return await self.session.accept(self.session.part("response_part", message, self, **options), **options)

    def send_unplaced(self, payload):
        message = ResponsePart(serial=self.serial, payload=payload)
        return not self.is_over and self.session.send_unplaced("unplaced_response_part", message, None)

    async def take(self):
        """The next part of the request; None at their end."""
        return await self.arrivals.take()

    def __aiter__(self):
        return self.arrivals.__aiter__()
