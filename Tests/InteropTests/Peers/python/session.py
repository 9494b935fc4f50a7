"""A session of docs/session-protocol.md, which outlives its connections, and is the same at a client and at a server."""

import asyncio
import time
from collections import Counter, deque

from session_lanes import Incoming, Outgoing, Violation
from session_messages import (
    OVERHEAD_LIMIT, SMALLEST_WINDOW, Frame, content_size, has_too_many_entries, message_size,
)

# What waits for room in the other side's window; who has more to send waits.
WAITING_LIMIT = 64
ACKNOWLEDGEMENT_DELAY = 0.02

CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNIMPLEMENTED = 1, 2, 3, 4, 8, 12


class Status(Exception):
    """How a request ended that did not succeed. A handler raises it, and who asked gets it."""

    def __init__(self, code, message="", details=(), metadata=None):
        super().__init__(f"status {code}: {message}")
        self.code, self.message, self.details, self.metadata = code, message, list(details), metadata or {}


class SessionLost(Exception):
    """The other side forgot the session: what was asked there is in doubt."""


class Offer:
    """What a side tells the other in its hello or welcome."""

    def __init__(self, frames=65_536, bytes=8 << 20, maximum_requests=1_024, maximum_frame=4 << 20):
        self.frames, self.bytes = frames, bytes
        self.maximum_requests, self.maximum_frame = maximum_requests, maximum_frame

    def fill(self, message):
        message.window.frames, message.window.bytes = self.frames, self.bytes
        message.maximum_requests, message.maximum_frame = self.maximum_requests, self.maximum_frame

    @staticmethod
    def of(message):
        if not message.HasField("window") or not message.window.frames or message.window.bytes < SMALLEST_WINDOW:
            raise Violation("it has no window, or a small one")
        return Offer(
            message.window.frames, message.window.bytes, message.maximum_requests or 1, message.maximum_frame or 4 << 20
        )


class Call:
    """A request of ours, and the pushes that come for it."""

    def __init__(self, serial, entry):
        self.serial, self.entry = serial, entry
        self.response = asyncio.get_running_loop().create_future()
        self.parts = asyncio.Queue()

    @property
    def was_sent(self):
        return self.entry and self.entry.frame.sequence


class Request:
    """A request of the other side's, as its handler sees it."""

    def __init__(self, session, request):
        self.session, self.serial, self.method = session, request.serial, request.method
        self.payload, self.metadata = request.payload, dict(request.metadata)
        self.has_pushed = False

    async def push(self, payload):
        """Sends a part of the response."""
        self.has_pushed = True
        frame = Frame()
        frame.push.serial, frame.push.payload = self.serial, payload
        await self.session.send(frame)


class Session:
    """`requests` and `pushes` are its handlers, by method; those of one method's pushes run one after the other. A
    forgetful one says no more than it has acknowledged, and sends again even what was processed: it has to be dropped."""

    def __init__(self, offer, requests, pushes, is_forgetful=False):
        self.is_forgetful = is_forgetful
        self.offer, self.requests, self.pushes = offer, requests, pushes
        self.other = None
        self.id = self.token = b""
        self.link = None
        self.draining = False
        self.last_serial = 0
        self.last_ping = 0
        self.pongs = {}
        # What happened that only a test wants to know.
        self.counts = Counter()
        self.changes = deque()
        self.wake = asyncio.Event()
        self.calls = {}
        self.begin([])

    # What the application does

    async def call(self, method, payload=b"", timeout=None, on_part=None, metadata=None):
        """Asks, and returns the response's payload. Parts of it go to `on_part`, one after the other."""
        while self.other and len(self.calls) >= self.other.maximum_requests:
            await self.change()
        self.last_serial += 1
        frame = Frame()
        frame.request.serial, frame.request.method, frame.request.payload = self.last_serial, method, payload
        frame.request.metadata.update(metadata or {})
        call = Call(self.last_serial, None)
        self.calls[call.serial] = call
        deadline = time.monotonic() + timeout if timeout is not None else None
        parts = asyncio.create_task(self.take_parts(call, on_part))
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                call.entry = await self.send(frame, deadline)
                # The parts end with the response.
                await parts
                return await call.response
        except TimeoutError:
            timed_out = True
            raise Status(DEADLINE_EXCEEDED) from None
        finally:
            parts.cancel()
            self.leave(call, timed_out)

    async def push(self, method, payload=b"", has_place=True):
        frame = Frame()
        frame.push.method, frame.push.payload = method, payload
        if has_place:
            await self.send(frame)
        elif self.link:
            self.link.send(frame)

    async def ping(self):
        self.last_ping += 1
        frame = Frame()
        frame.ping.number = self.last_ping
        answer = self.pongs[self.last_ping] = asyncio.get_running_loop().create_future()
        self.link.send(frame)
        await answer

    async def send(self, frame, deadline=None):
        """Gives a frame to the ordinary lane."""
        if self.other and message_size(frame) > self.other.bytes:
            raise ValueError("the other side takes no message of that size")
        while len(self.ordinary_out.waiting) >= WAITING_LIMIT:
            await self.change()
        entry = self.ordinary_out.add(frame, deadline)
        self.wake.set()
        return entry

    async def processed(self):
        """Waits until the other side has processed everything."""
        while any(lane.waiting or lane.kept for lane, _ in self.lanes):
            await self.change()

    @property
    def waits_for_responses(self):
        """Whether requests were sent that have no response yet."""
        return any(call.was_sent for call in self.calls.values())

    async def change(self):
        """Waits until anything of the session's has changed."""
        changed = asyncio.get_running_loop().create_future()
        self.changes.append(changed)
        await changed

    # A session's life

    def begin(self, waiting):
        """A session without a past, with what was accepted for the last one and not sent."""
        self.ordinary_out, self.urgent_out = Outgoing("sequence"), Outgoing("urgent_sequence")
        self.ordinary_in, self.urgent_in = Incoming("sequence"), Incoming("urgent_sequence")
        self.lanes = [(self.ordinary_out, self.ordinary_in), (self.urgent_out, self.urgent_in)]
        self.ordinary_out.waiting.extend(waiting)
        self.resent = deque()
        self.running = {}
        # Cancelled ones are among the tasks until they are done.
        self.tasks = set()
        self.queues = {}
        self.workers = []
        self.acknowledgement_due = None

    def lose(self):
        """The other side forgot it: begins anew, and returns what is in doubt."""
        in_doubt = [entry.frame for entry in self.ordinary_out.kept if entry.begins]
        for call in [call for call in self.calls.values() if call.was_sent]:
            self.fail(call, SessionLost())
        self.end()
        self.begin([entry for entry in self.ordinary_out.waiting if entry.outlives_its_session])
        self.notify()
        return in_doubt

    def end(self):
        for task in [*self.tasks, *self.workers]:
            task.cancel()
        if self.acknowledgement_due:
            self.acknowledgement_due.cancel()

    def fail_all(self, error):
        for call in list(self.calls.values()):
            self.fail(call, error)

    def describe_progress(self, message):
        """What hello and welcome say of the frames that came. All of it is processed, or waits in memory for that."""
        if self.is_forgetful:
            message.processed, message.urgent_processed = self.ordinary_in.acknowledged, self.urgent_in.acknowledged
            return
        message.processed, message.received = self.ordinary_in.processed, self.ordinary_in.received
        message.urgent_processed = self.urgent_in.processed
        for _, lane in self.lanes:
            lane.acknowledge()

    def resume(self, message):
        """Takes the other side's progress: `message` is its hello or its welcome."""
        again = [*self.ordinary_out.last, *self.ordinary_out.kept, *self.urgent_out.last, *self.urgent_out.kept]
        received = message.received if message.received >= message.processed else 0
        missing = self.ordinary_out.resume(message.processed, received)
        missing += self.urgent_out.resume(message.urgent_processed, 0)
        self.resent = deque(again if self.is_forgetful else missing)

    def attach(self, link, message):
        self.link, self.other, self.draining = link, Offer.of(message), False
        self.counts["connections"] += 1
        self.wake.set()
        self.notify()

    def detach(self, link):
        if self.link is link:
            self.link = None
            self.notify()

    # Sending

    async def write(self, link):
        """Sends what there is to send as long as the connection lives."""
        while self.link is link and link.is_open:
            entry = self.next_entry()
            if entry:
                entry.set_timeout()
                self.stamp(entry.frame)
                link.send(entry.frame)
                await link.drain()
                self.notify()
            elif self.ordinary_in.wants_acknowledgement(self.offer) or self.urgent_in.wants_acknowledgement(self.offer):
                link.send(self.stamp(Frame()))
            else:
                self.wake.clear()
                await self.wake.wait()

    def next_entry(self):
        if self.resent:
            return self.resent.popleft()
        for lane in (self.urgent_out, self.ordinary_out):
            if lane.waiting and lane.has_room(self.other) and not (self.draining and lane.waiting[0].begins):
                return lane.next()
        return None

    def stamp(self, frame):
        """Writes onto a frame how far we are."""
        frame.acknowledgement, frame.urgent_acknowledgement = self.ordinary_in.acknowledge(), self.urgent_in.acknowledge()
        if self.acknowledgement_due:
            self.acknowledgement_due.cancel()
            self.acknowledgement_due = None
        return frame

    def finish(self, lane, place):
        """A frame was processed."""
        if lane not in (self.ordinary_in, self.urgent_in):
            return  # That session is lost.
        lane.finish(place)
        self.notify()
        if lane.wants_acknowledgement(self.offer):
            self.wake.set()
        elif not self.acknowledgement_due:
            loop = asyncio.get_running_loop()
            self.acknowledgement_due = loop.call_later(ACKNOWLEDGEMENT_DELAY, self.acknowledge)

    def acknowledge(self):
        self.acknowledgement_due = None
        if self.link and any(lane.processed > lane.acknowledged for _, lane in self.lanes):
            self.link.send(self.stamp(Frame()))

    # Receiving

    def receive(self, frame, length):
        """Takes a frame that is neither hello, welcome nor goodbye."""
        kind = frame.WhichOneof("kind")
        if kind in ("hello", "welcome"):
            raise Violation(f"a {kind} came in the midst of a session")
        self.ordinary_out.acknowledge(frame.acknowledgement)
        self.urgent_out.acknowledge(frame.urgent_acknowledgement)
        self.notify()
        self.wake.set()

        size = content_size(frame)
        if kind in ("request", "response", "push") and length > size + OVERHEAD_LIMIT:
            raise Violation(f"a frame of {length} bytes has only {size} of contents")
        if kind in ("response", "push") and has_too_many_entries(getattr(frame, kind)):
            raise Violation(f"a {kind} has too many entries")
        if frame.sequence and frame.urgent_sequence:
            raise Violation("a frame has places in both lanes")
        lane = self.urgent_in if frame.urgent_sequence else self.ordinary_in
        place = frame.urgent_sequence or frame.sequence
        if not place and kind in ("request", "response", "cancel"):
            raise Violation(f"a {kind} has no place")
        if place and kind in ("ping", "pong"):
            raise Violation(f"a {kind} has a place")
        if frame.urgent_sequence and kind in ("request", "push"):
            raise Violation(f"a {kind} stands in the urgent lane")
        if place and not lane.receive(place, message_size(frame), self.offer):
            self.counts["doubled"] += 1
            return

        def done():
            if place:
                self.finish(lane, place)

        if kind == "request":
            self.take_request(frame.request, done)
        elif kind == "response":
            self.take_response(frame.response, done)
        elif kind == "push":
            self.take_push(frame.push, done)
        elif kind == "cancel":
            if task := self.running.pop(frame.cancel.serial, None):
                task.cancel()
            done()
        elif kind == "ping":
            pong = Frame()
            pong.pong.number = frame.ping.number
            self.link.send(pong)
        elif kind == "pong":
            if answer := self.pongs.pop(frame.pong.number, None):
                answer.set_result(None)
        else:
            if place:
                self.counts["kindless"] += 1
            done()

    def take_request(self, message, done):
        if not message.serial:
            raise Violation("a request has serial 0")
        if message.serial in self.running:
            raise Violation(f"a second request has serial {message.serial}")
        request = Request(self, message)
        if has_too_many_entries(message):
            self.respond(request, status=Status(INVALID_ARGUMENT, "too many entries of metadata"))
        elif len(self.tasks) >= self.offer.maximum_requests:
            self.respond(request, status=Status(RESOURCE_EXHAUSTED, "too many requests"))
        else:
            timeout = message.timeout_milliseconds / 1000 if message.timeout_milliseconds else None
            task = self.running[message.serial] = asyncio.create_task(self.handle(request, timeout))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        done()

    async def handle(self, request, timeout):
        running = self.running
        try:
            async with asyncio.timeout(timeout):
                handler = self.requests.get(request.method)
                if not handler:
                    raise Status(UNIMPLEMENTED, f"there is no method {request.method}")
                payload = await handler(self, request)
            self.respond(request, payload=payload)
        except Status as status:
            self.respond(request, status=status)
        except (TimeoutError, asyncio.CancelledError):
            pass  # Nobody waits any more.
        except Exception as error:
            self.respond(request, status=Status(UNKNOWN, str(error)))
        finally:
            running.pop(request.serial, None)

    def respond(self, request, payload=b"", status=None):
        response = (frame := Frame()).response
        response.serial, response.payload = request.serial, payload
        if status:
            response.status, response.message = status.code, status.message
            response.metadata.update(status.metadata)
            for detail in status.details:
                response.details.add().Pack(detail)
        (self.ordinary_out if request.has_pushed else self.urgent_out).add(frame)
        self.wake.set()

    def take_response(self, response, done):
        if call := self.calls.pop(response.serial, None):
            call.parts.put_nowait(None)
            if response.status:
                details = list(response.details)
                call.response.set_exception(
                    Status(response.status, response.message, details, dict(response.metadata))
                )
            else:
                call.response.set_result(response.payload)
        done()

    def take_push(self, push, done):
        if push.serial:
            if call := self.calls.get(push.serial):
                call.parts.put_nowait((push.payload, done))
            else:
                done()
        elif handler := self.pushes.get(push.method):
            if push.method not in self.queues:
                self.queues[push.method] = queue = asyncio.Queue()
                self.workers.append(asyncio.create_task(self.handle_pushes(handler, queue)))
            self.queues[push.method].put_nowait((push, done))
        else:
            self.counts["unwanted"] += 1
            done()

    async def handle_pushes(self, handler, queue):
        while True:
            push, done = await queue.get()
            await handler(self, push)
            done()

    async def take_parts(self, call, on_part):
        while part := await call.parts.get():
            payload, done = part
            try:
                if on_part:
                    await on_part(payload)
            finally:
                done()

    def leave(self, call, timed_out):
        """The application has the response, or does not wait for it any more."""
        while not call.parts.empty():
            if part := call.parts.get_nowait():
                part[1]()
        if self.calls.pop(call.serial, None) is None:
            return
        if call.entry in self.ordinary_out.waiting:
            self.ordinary_out.waiting.remove(call.entry)
        elif call.entry and not timed_out:
            frame = Frame()
            frame.cancel.serial = call.serial
            self.urgent_out.add(frame)
            self.wake.set()
        self.notify()

    def fail(self, call, error):
        self.calls.pop(call.serial, None)
        if not call.response.done():
            call.response.set_exception(error)
        call.parts.put_nowait(None)

    def notify(self):
        changes, self.changes = self.changes, deque()
        for changed in changes:
            if not changed.done():
                changed.set_result(None)
