"""A session, which outlives its connections, and is the same at a client and at a server."""

import asyncio
import contextlib
import time
from collections import Counter, deque

from session_lanes import Entry, Incoming, Outgoing
from session_messages import METHOD_LIMIT, METHOD_NAME_LIMIT, PAIR_LIMIT, Frame, Violation, encode
from session_streams import (
    DEADLINE_EXCEEDED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNKNOWN, AnsweredRequest, Arrivals, Call,
    Cancel, Grants, Method, Push, Response, SessionLost, Status, Stream, TooLarge, UnexpectedParts,
)

# The limit of unsent entries in the ordinary lane; the application waits before it adds more.
WAITING_LIMIT = 64
ACKNOWLEDGEMENT_DELAY = 0.02
# The number of unacknowledged urgent frames up to which the other side may send requests.
URGENT_LIMIT = 16_384
LAST_SERIAL = (1 << 32) - 1
REQUESTS_BEFORE_WELCOME = 1_024


class Overloaded(Exception):
    """A frame cannot be kept: the connection drains, and takes nothing more."""


def takes_parts(handler):
    """Marks a handler of requests whose messages follow in parts."""
    handler.takes_parts = True
    return handler


class Session:
    """`requests` and `pushes` are its handlers, by method; those of one method's pushes run one after the other. When a
    forgetful session opens, it drops what has come and was not begun."""

    def __init__(self, terms, requests, pushes, is_forgetful=False):
        self.is_forgetful = is_forgetful
        self.offer, self.requests, self.pushes = terms, requests, pushes
        self.id = self.token = b""
        self.name = ""
        self.attempt = 0
        # The reason for which no further session will follow.
        self.error = None
        self.link = None
        self.last_serial = 0
        self.last_ping = 0
        self.pongs = {}
        # Pushes that are refused on arrival: see `Overloaded`.
        self.overloads = 0
        # Information for tests.
        self.counts = Counter()
        self.changes = deque()
        self.wake = asyncio.Event()
        self.request_turn = asyncio.Lock()
        self.calls = {}
        # The credits of the pushes of each method.
        self.pushed = {}
        self.life = 0
        self.begin([])

    # Calls of the application

    async def call(self, method, payload=b"", timeout=None, metadata=None):
        """Asks, and returns the payload of the response."""
        async with self.open(method, payload, timeout=timeout, metadata=metadata, expects_parts=False) as call:
            return await call.response

    @contextlib.asynccontextmanager
    async def open(
        self, method, payload=b"", sends_parts=False, expects_parts=True, timeout=None, metadata=None,
    ):
        """A call whose parts are sent and taken in the body. Leaving the body cancels it if it is not over."""
        call = Call(self, method, payload, metadata, sends_parts, expects_parts, timeout)
        try:
            async with asyncio.timeout(timeout):
                await self.accept(call.entry, turn=self.request_turn)
                yield call
        except TimeoutError:
            raise Status(DEADLINE_EXCEEDED) from None
        finally:
            self.leave(call)

    async def push(self, method, payload=b"", metadata=None, **options):
        """False: it was not sent, as it expired or a newer one has its place."""
        stream = self.push_stream(method)
        message = Push(payload=payload, metadata=metadata or {})
        entry = Entry("push", message, method, stream=stream, deadline=deadline_after(options.get("lifetime")))
        return await self.accept(entry, **options)

    def push_stream(self, method):
        if method not in self.pushed:
            self.pushed[method] = Stream(self.credit)
        return self.pushed[method]

    async def push_unplaced(self, method, payload=b""):
        """Sends a push at most once. Returns whether it was sent."""
        number, entry = self.number(method)
        while self.link and not 0 < entry.place <= self.ordinary_out.reached:
            await self.change()
        return self.send_unplaced("unplaced_push", Push(method=number, payload=payload), entry)

    def part(self, kind, message, owner, lifetime=None, **_):
        return Entry(kind, message, stream=owner.stream, owner=owner, deadline=deadline_after(lifetime))

    async def accept(self, entry, turn=None, replaceable=False, lifetime=None):
        """Gives an entry to its lane as soon as it may go there. False: it is not worth sending any more."""
        stream = entry.stream
        if replaceable:
            if self.overwrite(stream.replaceable, entry):
                self.counts["overwritten"] += 1
                return False
            stream.replaceable = entry
        entry.is_outside = True
        try:
            async with turn or stream.turn:
                while not (entry.is_worthless() or self.may_enter(entry)):
                    if self.error:
                        raise self.error
                    await self.change()
                if entry.is_worthless():
                    self.counts["not_sent"] += 1
                    return False
                self.enter(entry)
        finally:
            entry.is_outside = False
        return True

    def overwrite(self, older, newer):
        """Whether the newer message has got the place of the older one, which was not sent."""
        if not older or older.place:
            if older:
                older.is_replaced = True
            return False
        if older.is_outside or older in self.held:
            older.message, older.deadline = newer.message, newer.deadline
            return not older.is_worthless()
        newer.write(older.message.method if older.method else 0)
        waiting, stream = self.ordinary_out.waiting, older.stream
        behind = [entry for entry in waiting if entry.stream is stream]
        if older not in behind or not self.fits(newer):
            older.is_replaced = True
            return False
        more = newer.cost - older.cost
        last = behind[-1]
        if last is not older and stream.used + more - last.cost >= stream.granted:
            older.is_replaced = True
            return False
        older.message, older.data, older.deadline = newer.message, newer.data, newer.deadline
        stream.used += more
        return True

    def send_unplaced(self, kind, message, needed):
        """`needed` is the entry without which the other side would not understand the message."""
        if not self.link or needed and not 0 < needed.place <= self.ordinary_out.reached:
            return False
        self.link.send(encode(kind, message))
        return True

    async def ping(self):
        self.last_ping += 1
        frame = Frame()
        frame.ping.number = self.last_ping
        answer = self.pongs[self.last_ping] = asyncio.get_running_loop().create_future()
        self.link.send_frame(frame)
        await answer

    @property
    def is_processed(self):
        """Whether the other side has processed everything that was accepted."""
        return not self.held and self.is_acknowledged

    @property
    def is_acknowledged(self):
        """Whether both lanes are sent and acknowledged."""
        return not any(lane.waiting or lane.kept for lane, _ in self.lanes)

    async def processed(self):
        while not self.is_processed:
            await self.change()

    @property
    def waits_for_responses(self):
        """Whether requests were sent that have no response yet."""
        return any(call.was_sent for call in self.calls.values())

    async def change(self):
        """Waits until anything in the session has changed."""
        changed = asyncio.get_running_loop().create_future()
        self.changes.append(changed)
        await changed

    def notify(self):
        changes, self.changes = self.changes, deque()
        for changed in changes:
            if not changed.done():
                changed.set_result(None)

    # A session's life

    @property
    def credit(self):
        """The credit with which streams to the other side begin; None before it is known."""
        return self.other.credit if self.other else None

    def begin(self, held):
        """A session without a past, with what was accepted for the last one and not sent."""
        self.life += 1
        # The other side's limits.
        self.other = None
        # The limits that the other side may rely on.
        self.terms = self.offer
        self.draining = False
        self.pause = 0
        self.ordinary_out, self.urgent_out = Outgoing("ordinary"), Outgoing("urgent")
        self.ordinary_in, self.urgent_in = Incoming("ordinary"), Incoming("urgent")
        self.lanes = [(self.ordinary_out, self.ordinary_in), (self.urgent_out, self.urgent_in)]
        self.resent = deque()
        # The numbers that this side has assigned, each with the entry that names the method.
        self.numbers = {}
        # The names from the other side; the first one has number 1.
        self.names = []
        self.push_grants = {}
        self.push_arrivals = {}
        # Pushes and parts that no handler has begun to process, by place.
        self.queued = {}
        self.open_grants, self.due_grants = set(), {}
        # Open requests, and the tasks of all handlers. Handlers of cancelled requests count, too.
        self.running, self.tasks = {}, {}
        self.workers = []
        self.acknowledgement_due = None
        for stream in self.streams:
            stream.reset(None)
        for call in self.calls.values():
            self.expect_parts(call)
        self.held = deque(held)
        self.enter_held()

    @property
    def streams(self):
        return [
            *self.pushed.values(), *(call.stream for call in self.calls.values()),
            *(request.stream for request in self.running.values()),
        ]

    def lose(self):
        """The session is over: begins anew, and returns the entries that are in doubt."""
        in_doubt = [entry for entry in self.ordinary_out.kept.values() if entry.begins and not entry.is_worthless()]
        failed = [call for call in self.calls.values() if call.was_sent]
        unsent = [entry for entry in [*self.ordinary_out.waiting, *self.held] if entry.outlives_its_session()]
        for call in failed:
            self.fail(call, SessionLost())
        self.end()
        self.id = self.token = b""
        for entry in unsent:
            entry.data = b""
        self.begin([entry for entry in unsent if not entry.is_worthless()])
        self.notify()
        return in_doubt

    def end(self):
        for task in [*self.tasks, *self.workers]:
            task.cancel()
        for request in self.running.values():
            request.is_over = True
        if self.acknowledgement_due:
            self.acknowledgement_due.cancel()

    def fail_all(self, error):
        self.error = error
        for call in list(self.calls.values()):
            self.fail(call, error)
        self.notify()

    def fill_progress(self, progress):
        """What hello and welcome say of the frames that came."""
        if self.is_forgetful:
            self.drop_queued()
        for _, lane in self.lanes:
            lane.reopen()
        progress.processed, progress.received = self.ordinary_in.processed, self.ordinary_in.received
        progress.urgent = self.urgent_in.processed

    def drop_queued(self):
        """Drops what came last, as far as no handler has begun with it. It comes again."""
        lane = self.ordinary_in
        floor = lane.received
        while floor in self.queued and floor > lane.told_received:
            item = self.queued.pop(floor)
            item.arrivals.items.remove(item)
            item.arrivals.grants.received -= item.cost
            self.counts["dropped"] += 1
            floor -= 1
        lane.drop_after(floor)

    def resume(self, progress):
        """Takes the progress of the other side's opening."""
        ordinary = self.ordinary_out.resume(progress.processed, progress.received)
        urgent = self.urgent_out.resume(progress.urgent, progress.urgent)
        self.resent = deque((self.ordinary_out, entry) for entry in ordinary)
        self.resent.extend((self.urgent_out, entry) for entry in urgent)
        self.counts["resent"] += len(self.resent)
        self.due_grants = {grants: None for grants in self.open_grants if grants.told != grants.initial}

    def attach(self, link, other):
        """The opening is done. `other` are the terms of the other side in it."""
        is_first = not self.other
        self.link, self.other, self.draining, self.pause = link, other.after(self.other), False, 0
        self.terms = self.offer.after(None if is_first else self.terms)
        if is_first:
            for stream in self.streams:
                stream.grant(self.other.credit)
        self.counts["connections"] += 1
        self.refuse_too_large()
        self.enter_held()
        self.wake.set()
        self.notify()

    def refuse_too_large(self):
        """What was accepted before the terms were known may be too large for them."""
        for entry in [entry for entry in self.ordinary_out.waiting if not self.fits(entry)]:
            self.ordinary_out.waiting.remove(entry)
            self.refuse(entry)

    def refuse(self, entry):
        self.counts["too_large"] += 1
        if entry.owner:
            call = entry.owner
            self.fail(call, TooLarge())
            if call.was_sent:
                self.send_cancel(call)

    def detach(self, link):
        if self.link is link:
            self.link = None
            self.notify()

    # Entering a lane

    def may_enter(self, entry):
        if self.draining and entry.begins or len(self.ordinary_out.waiting) >= WAITING_LIMIT:
            return False
        if entry.kind == "request" and len(self.calls) >= self.request_limit:
            return False
        # Entries that were accepted for an earlier session go first.
        if any(earlier.method == entry.method and earlier.owner is entry.owner for earlier in self.held):
            return False
        return not entry.stream or entry.stream.has_credit

    @property
    def request_limit(self):
        return self.other.maximum_requests if self.other else REQUESTS_BEFORE_WELCOME

    def enter_held(self):
        """Gives to the lane what was accepted for an earlier session, in its order, as far as it has credit."""
        blocked, held = set(), self.held
        self.held = deque()
        for entry in held:
            if entry.is_worthless():
                continue
            if entry.stream in blocked or entry.stream and not entry.stream.has_credit:
                blocked.add(entry.stream)
                self.held.append(entry)
                continue
            # The end of a stream follows its parts.
            if entry.kind == "request_end" and entry.owner.stream in blocked:
                self.held.append(entry)
                continue
            try:
                self.enter(entry)
            except TooLarge:
                self.refuse(entry)

    def enter(self, entry):
        if entry.kind == "request" and not entry.owner.serial:
            entry.message.serial = entry.owner.serial = self.next_serial()
            self.calls[entry.owner.serial] = entry.owner
            entry.owner.stream.reset(self.credit)
            self.expect_parts(entry.owner)
        number = self.number(entry.method)[0] if entry.method else 0
        entry.write(number)
        if not self.fits(entry):
            raise TooLarge(f"a {entry.kind} of {len(entry.data)} bytes")
        if entry.stream:
            entry.stream.used += entry.cost
        lane = self.urgent_out if entry.kind in ("urgent_response", "cancel") else self.ordinary_out
        lane.waiting.append(entry)
        self.wake.set()

    def fits(self, entry):
        return not self.other or entry.cost <= self.other.bytes and len(entry.data) <= self.other.maximum_frame

    def number(self, method):
        """The number of a method, and the entry that tells it to the other side."""
        if method not in self.numbers:
            if len(self.numbers) >= METHOD_LIMIT:
                raise ValueError("too many methods")
            number = len(self.numbers) + 1
            entry = Entry("method", Method(number=number, name=method))
            entry.write(0)
            self.numbers[method] = number, entry
            self.ordinary_out.waiting.append(entry)
            self.wake.set()
        return self.numbers[method]

    def next_serial(self):
        """Serials of calls that are not over are passed over."""
        while True:
            self.last_serial = self.last_serial % LAST_SERIAL + 1
            if self.last_serial not in self.calls:
                return self.last_serial

    def expect_parts(self, call):
        """The session of a call has begun, or the call in it."""
        call.grants = Grants("response", call.serial, self.terms.credit)
        self.open_grants.add(call.grants)
        if call.arrivals:
            call.arrivals.grants, call.arrivals.life = call.grants, self.life
        else:
            call.arrivals = Arrivals(self, call.grants)

    # Sending

    async def write(self, link):
        """Sends what there is to send as long as the connection lives."""
        # Earlier acknowledgements with ranges may have been lost.
        if any(lane.untold for _, lane in self.lanes):
            self.send_acknowledgement()
        while self.link is link and link.is_open:
            if any(lane.wants_acknowledgement(self.terms) for _, lane in self.lanes):
                self.send_acknowledgement()
            elif self.due_grants:
                self.counts["credits_sent"] += 1
                link.send_frame(self.due_grants.popitem()[0].frame())
            elif entry := self.next_entry():
                entry.set_timeout()
                link.send(entry.data)
                await link.drain()
                self.notify()
            else:
                self.wake.clear()
                await self.wake.wait()

    def next_entry(self):
        if self.resent:
            lane, entry = self.resent.popleft()
            # There are no blanks in the urgent lane.
            if lane is self.ordinary_out and entry.is_worthless():
                self.counts["blanks_sent"] += 1
                lane.make_blank(entry)
            lane.reached = entry.place
            return entry
        for lane in (self.urgent_out, self.ordinary_out):
            while lane.waiting and lane.waiting[0].is_worthless():
                entry = lane.waiting.popleft()
                self.counts["not_sent"] += 1
                if entry.stream:
                    entry.stream.used -= entry.cost
                self.notify()
            if lane.waiting and lane.has_room(self.other):
                entry = lane.next()
                lane.reached = entry.place
                return entry
        return None

    def finish(self, lane, place):
        """A frame was processed."""
        if lane not in (self.ordinary_in, self.urgent_in):
            return  # It came in an earlier session.
        lane.finish(place)
        self.notify()
        if lane.wants_acknowledgement(self.terms):
            self.wake.set()
        elif not self.acknowledgement_due:
            loop = asyncio.get_running_loop()
            self.acknowledgement_due = loop.call_later(ACKNOWLEDGEMENT_DELAY, self.send_acknowledgement)

    def send_acknowledgement(self):
        """Tells all that was processed and not told."""
        if self.acknowledgement_due:
            self.acknowledgement_due.cancel()
            self.acknowledgement_due = None
        while self.link and any(lane.has_news for _, lane in self.lanes):
            # A pair takes at most 20 bytes.
            pairs = min(PAIR_LIMIT, self.other.maximum_frame // 20 - 2)
            number, ranges = self.ordinary_in.acknowledge(pairs)
            self.urgent_in.acknowledge_processed()
            frame = Frame()
            frame.acknowledgement.ordinary, frame.acknowledgement.urgent = number, self.urgent_in.processed
            frame.acknowledgement.ranges.extend(ranges)
            self.counts["ranges_sent"] += len(ranges) // 2
            self.link.send_frame(frame)

    def consume(self, grants, cost):
        """A message of a stream was consumed or dropped."""
        if grants in self.open_grants and grants.consume(cost):
            self.due_grants[grants] = None
            self.wake.set()

    def close_grants(self, grants):
        self.open_grants.discard(grants)
        self.due_grants.pop(grants, None)

    # Receiving

    def receive(self, received):
        """Takes a frame that is none of hello, welcome, goodbye and ping."""
        kind = received.kind
        if kind in ("hello", "welcome"):
            raise Violation(f"a {kind} came in the midst of a session")
        lane = self.ordinary_in if received.is_ordinary else self.urgent_in if received.is_urgent else None
        if self.overloads and kind == "push":
            self.overloads -= 1
            raise Overloaded
        place = lane.receive(received.cost, self.terms) if lane else 0
        if kind in ("push", "unplaced_push", "response", "urgent_response") and received.has_too_many_entries:
            raise Violation(f"a {kind} has too many entries")
        take = getattr(self, f"take_{kind}", None) if kind else None
        if not take:
            self.counts["unknown_kinds"] += bool(received.number)
            is_done = True
        else:
            # None: a handler will finish it later.
            is_done = take(received.message, received, place) is not LATER
        if lane and is_done:
            self.finish(lane, place)
        self.notify()

    def take_acknowledgement(self, message, received, place):
        self.ordinary_out.acknowledge(message.ordinary)
        self.ordinary_out.acknowledge_ranges(message.ordinary, list(message.ranges))
        self.urgent_out.acknowledge(message.urgent)
        self.counts["acknowledgements_received"] += 1
        self.counts["ranges_received"] += len(message.ranges) // 2
        self.wake.set()

    def take_credit(self, message, received, place):
        if [message.method, message.request, message.response].count(0) != 2:
            raise Violation("a credit does not name one stream")
        stream = None
        if message.method:
            names = list(self.numbers)
            if message.method <= len(names):
                stream = self.push_stream(names[message.method - 1])
        elif message.request:
            stream = (call := self.calls.get(message.request)) and call.stream
        else:
            stream = (request := self.running.get(message.response)) and request.stream
        self.counts["credits_received"] += 1
        if stream:
            stream.grant(message.bytes)
            self.enter_held()

    def take_pong(self, message, received, place):
        if answer := self.pongs.pop(message.number, None):
            answer.set_result(None)

    def take_method(self, message, received, place):
        if len(self.names) == METHOD_LIMIT:
            raise Violation("too many methods")
        if message.number != len(self.names) + 1:
            raise Violation(f"method {message.number} came where {len(self.names) + 1} was to come")
        if not 1 <= len(message.name.encode()) <= METHOD_NAME_LIMIT:
            raise Violation(f"a method name of {len(message.name.encode())} bytes")
        if message.name in self.names:
            raise Violation(f"{message.name} has a number already")
        self.names.append(message.name)
        self.counts["methods_received"] += 1

    def name_of(self, number):
        if not 1 <= number <= len(self.names):
            raise Violation(f"method {number} was not named")
        return self.names[number - 1]

    def take_push(self, message, received, place):
        name = self.name_of(message.method)
        if message.method not in self.push_grants:
            grants = self.push_grants[message.method] = Grants("method", message.method, self.terms.credit)
            self.open_grants.add(grants)
            arrivals = self.push_arrivals[message.method] = Arrivals(self, grants)
            if handler := self.pushes.get(name):
                self.workers.append(asyncio.create_task(self.handle_pushes(handler, arrivals)))
            else:
                arrivals.close()
        if place:
            self.push_grants[message.method].receive(received.cost)
        self.counts["unwanted"] += name not in self.pushes
        self.push_arrivals[message.method].put(place, received.cost, message)
        return LATER

    def take_unplaced_push(self, message, received, place):
        self.counts["unplaced_received"] += 1
        self.take_push(message, received, 0)

    async def handle_pushes(self, handler, arrivals):
        async for push in arrivals:
            await handler(self, push)

    def take_request(self, message, received, place):
        method = self.name_of(message.method)
        if not message.serial:
            raise Violation("a request has serial 0")
        if message.serial in self.running:
            raise Violation(f"a second request has serial {message.serial}")
        if message.parts_follow and message.payload:
            raise Violation("a request has a payload, and parts follow")
        if len(self.urgent_out.kept) + len(self.urgent_out.waiting) >= URGENT_LIMIT:
            raise Violation("too many urgent frames were not acknowledged")
        request = AnsweredRequest(self, message, method, received.cost)
        handler = self.requests.get(method)
        if received.has_too_many_entries:
            self.respond(request, status=Status(INVALID_ARGUMENT, "too many entries of metadata"))
        elif len(self.tasks) >= max(1, self.terms.maximum_requests):
            self.respond(request, status=Status(RESOURCE_EXHAUSTED, "too many requests"))
        elif sum(running.cost for running in self.tasks.values()) >= self.terms.bytes:
            self.respond(request, status=Status(RESOURCE_EXHAUSTED, "too large requests"))
        elif not handler:
            self.respond(request, status=Status(UNIMPLEMENTED, f"there is no method {method}"))
        elif message.parts_follow != hasattr(handler, "takes_parts"):
            self.respond(request, status=Status(UNIMPLEMENTED, f"{method} has another form"))
        else:
            self.running[request.serial] = request
            if request.parts_follow:
                self.open_grants.add(request.grants)
            else:
                request.arrivals.end()
            timeout = message.timeout_milliseconds / 1000 if message.timeout_milliseconds else None
            request.task = asyncio.create_task(self.handle(request, handler, timeout))
            self.tasks[request.task] = request
            request.task.add_done_callback(lambda task, tasks=self.tasks: tasks.pop(task))

    async def handle(self, request, handler, timeout):
        try:
            async with asyncio.timeout(timeout):
                payload = await handler(self, request)
            self.respond(request, payload=payload)
        except Status as status:
            self.respond(request, status=status)
        except (TimeoutError, asyncio.CancelledError):
            pass  # Nobody waits any more.
        except Exception as error:
            self.respond(request, status=Status(UNKNOWN, f"{type(error).__name__}: {error}"))
        finally:
            self.close_request(request)

    def close_request(self, request):
        """It is answered, cancelled or out of time: what comes for it is late."""
        request.is_over = True
        if self.running.get(request.serial) is request:
            del self.running[request.serial]
        self.close_grants(request.grants)
        request.arrivals.close()

    def respond(self, request, payload=b"", status=None):
        if request.is_over:
            return
        response = Response(serial=request.serial, payload=payload)
        if status:
            response.status, response.message = status.code, status.message
            response.metadata.update(status.metadata)
            for detail in status.details:
                response.details.add().Pack(detail)
        kind = "response" if request.has_sent_part else "urgent_response"
        try:
            self.enter(Entry(kind, response, owner=request))
        except TooLarge as error:
            self.respond(request, status=Status(RESOURCE_EXHAUSTED, str(error)))
        request.is_over = True

    def take_request_part(self, message, received, place):
        request = self.running.get(message.serial)
        if not request:
            self.counts["late"] += 1
            return None
        if not request.parts_follow:
            raise Violation(f"a part came for request {message.serial}, which has none")
        if request.has_ended:
            raise Violation(f"a part came for request {message.serial} after the end")
        request.grants.receive(received.cost)
        request.arrivals.put(place, received.cost, message.payload)
        return LATER

    def take_request_end(self, message, received, place):
        request = self.running.get(message.serial)
        if not request:
            self.counts["late"] += 1
            return
        if not request.parts_follow:
            raise Violation(f"an end came for request {message.serial}, which has no parts")
        if request.has_ended:
            raise Violation(f"a second end came for request {message.serial}")
        request.has_ended = True
        self.close_grants(request.grants)
        request.arrivals.end()

    def take_unplaced_request_part(self, message, received, place):
        self.counts["unplaced_received"] += 1
        request = self.running.get(message.serial)
        if request and request.parts_follow and not request.has_ended:
            request.arrivals.put(0, 0, message.payload)

    def take_response_part(self, message, received, place):
        call = self.calls.get(message.serial)
        if not call:
            self.counts["late"] += 1
            return None
        if not call.expects_parts:
            self.fail(call, UnexpectedParts())
            self.send_cancel(call)
            return None
        call.grants.receive(received.cost)
        call.arrivals.put(place, received.cost, message.payload)
        return LATER

    def take_unplaced_response_part(self, message, received, place):
        self.counts["unplaced_received"] += 1
        call = self.calls.get(message.serial)
        if call and call.expects_parts:
            call.arrivals.put(0, 0, message.payload)

    def take_response(self, message, received, place):
        if not (call := self.calls.get(message.serial)):
            return
        self.close_call(call)
        if message.status:
            status = Status(message.status, message.message, message.details, dict(message.metadata))
            call.response.set_exception(status)
        else:
            call.response.set_result(message.payload)
        call.arrivals.end()

    def take_urgent_response(self, message, received, place):
        self.counts["urgent_responses"] += 1
        self.take_response(message, received, place)

    def take_cancel(self, message, received, place):
        if request := self.running.get(message.serial):
            self.counts["cancelled"] += 1
            request.is_cancelled = True
            self.close_request(request)
            request.task.cancel()

    def take_blank(self, message, received, place):
        self.counts["blanks_received"] += 1

    # Ends of calls

    def leave(self, call):
        """The application has the response, or does not wait for it any more."""
        if not call.is_over and call.was_sent:
            self.send_cancel(call)
        self.close_call(call)
        if call.arrivals:
            call.arrivals.close()

    def send_cancel(self, call):
        self.enter(Entry("cancel", Cancel(serial=call.serial), owner=None))

    def fail(self, call, error):
        self.close_call(call)
        if not call.response.done():
            call.response.set_exception(error)
        call.arrivals.close()

    def close_call(self, call):
        call.is_over = True
        if self.calls.get(call.serial) is call:
            del self.calls[call.serial]
        self.close_grants(call.grants)
        self.wake.set()
        self.notify()


# The result of a `take_…` function if the frame is not processed yet.
LATER = object()


def deadline_after(lifetime):
    return None if lifetime is None else time.monotonic() + lifetime
