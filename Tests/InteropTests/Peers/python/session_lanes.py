"""The two directions of a lane: what was sent and is not acknowledged, and what came and is not processed."""

import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Optional

from session_messages import BLANK, PAIR_LIMIT, Violation, cost, encode, encode_request, set_timeout

LARGEST_PLACE = (1 << 64) - 1
# The processed cost since the last acknowledgement after which one is due.
DUE_FRAMES, DUE_COST = 16, 32 << 10


@dataclass(eq=False)
class Entry:
    """A message on its way out. Its bytes are written when it enters the lane, as only then its method has a number."""
    kind: str
    # Without the number of the method and, for a request, without the serial.
    message: Any
    # The name of the method that a push or a request is for.
    method: str = ""
    # The stream whose credit it uses.
    stream: Any = None
    # The call or the request that it belongs to.
    owner: Any = None
    # The time at which it expires, or a request times out, by the monotonic clock.
    deadline: Optional[float] = None
    is_replaced: bool = False
    # Whether it waits outside of the lane, for credit or for room.
    is_outside: bool = False
    data: bytes = b""
    place: int = 0

    @property
    def cost(self):
        return cost(self.data)

    @property
    def begins(self):
        """Whether it begins something, which is not done on a connection that drains."""
        return self.kind in ("push", "request")

    def outlives_its_session(self):
        """Whether it means the same in another session when it was not sent in this one."""
        return self.begins or self.kind in ("request_part", "request_end") and not self.owner.was_sent

    def write(self, number):
        """Writes the bytes, with this number of the method."""
        if self.method:
            self.message.method = number
        if self.kind == "request" and self.deadline is not None:
            self.data = encode_request(self.message)
        else:
            self.data = encode(self.kind, self.message)

    def set_timeout(self):
        """The time-out of a request counts from each sending."""
        if self.kind == "request" and self.deadline is not None:
            self.data = set_timeout(self.data, self.deadline - time.monotonic())

    def is_worthless(self):
        """Whether nobody wants it any more: it is not sent, or a blank stands in its place."""
        if self.kind in ("push", "request_part", "response_part"):
            if self.is_replaced or self.deadline is not None and time.monotonic() > self.deadline:
                return True
        return self.owner is not None and self.kind not in ("cancel", "blank") and self.owner.is_unwanted


class Outgoing:
    def __init__(self, name):
        self.name = name
        self.waiting = deque()
        # Sent and not acknowledged, by place, in order.
        self.kept = {}
        self.kept_cost = 0
        self.sent = 0
        # The other side has processed everything up to this place, and no place above `highest`.
        self.processed = self.highest = 0
        # The last place that an opening reported as received.
        self.received = 0
        # The last place that was received over earlier connections, or sent over this one.
        self.reached = 0

    def has_room(self, window):
        """Whether the window has room for the first that waits."""
        return len(self.kept) < window.frames and self.kept_cost + self.waiting[0].cost <= window.bytes

    def next(self):
        entry = self.waiting.popleft()
        self.sent += 1
        entry.place = self.sent
        self.kept[entry.place] = entry
        self.kept_cost += entry.cost
        return entry

    def acknowledge(self, place):
        self.check(place)
        for processed in range(self.processed + 1, place + 1):
            self.drop(processed)
        self.processed = max(self.processed, place)

    def acknowledge_ranges(self, place, numbers):
        if len(numbers) % 2:
            raise Violation("an odd count of numbers in ranges")
        if len(numbers) // 2 > PAIR_LIMIT:
            raise Violation("too many ranges")
        for skip, run in zip(numbers[::2], numbers[1::2]):
            if not skip or not run:
                raise Violation("a 0 in ranges")
            if place + skip + run > LARGEST_PLACE:
                raise Violation("ranges above the last number")
            first, place = place + skip + 1, place + skip + run
            self.check(place)
            for processed in range(max(first, self.processed + 1), place + 1):
                self.drop(processed)

    def check(self, place):
        if place > self.reached:
            raise Violation(f"{self.name} place {place} was acknowledged, and {self.reached} was the last one sent")
        self.highest = max(self.highest, place)

    def drop(self, place):
        if entry := self.kept.pop(place, None):
            self.kept_cost -= entry.cost

    def resume(self, processed, received):
        """Takes the progress of an opening, and returns what has to be sent again."""
        if received > self.sent:
            raise Violation(f"{self.name} place {received} came, and {self.sent} was the last one sent")
        if processed < self.processed:
            raise Violation(f"{self.name} places went back to {processed} after {self.processed}")
        if received < max(processed, self.highest, self.received):
            raise Violation(f"{self.name} place {received} came last, and an earlier one came before")
        self.reached = self.received = received
        self.acknowledge(processed)
        return [entry for place, entry in self.kept.items() if place > received]

    def make_blank(self, entry):
        self.kept_cost -= entry.cost
        if entry.stream:
            entry.stream.used -= entry.cost
        entry.kind, entry.data, entry.stream = "blank", BLANK, None
        self.kept_cost += entry.cost


class Incoming:
    def __init__(self, name):
        self.name = name
        self.received = self.processed = self.acknowledged = 0
        # Places that were processed out of order, and those of them that no range over this connection has reported.
        self.early, self.untold = set(), set()
        # The costs of received frames that are not acknowledged.
        self.costs = {}
        self.cost = 0
        # Since the last acknowledgement.
        self.new_frames = self.new_cost = 0
        # The progress in the last opening.
        self.told_received = 0

    def receive(self, cost, window):
        """Counts a frame, and returns its place."""
        if len(self.costs) >= window.frames or self.cost + cost > window.bytes:
            raise Violation(f"{self.name} place {self.received + 1} is beyond the window")
        self.received += 1
        self.costs[self.received] = cost
        self.cost += cost
        return self.received

    def finish(self, place):
        self.new_frames += 1
        self.new_cost += self.costs[place]
        self.early.add(place)
        self.untold.add(place)
        while self.processed + 1 in self.early:
            self.processed += 1
            self.early.remove(self.processed)
            self.untold.discard(self.processed)

    @property
    def has_news(self):
        return self.processed > self.acknowledged or bool(self.untold)

    def wants_acknowledgement(self, window):
        """Whether so much was processed that the other side should know now."""
        return self.has_news and (
            self.new_frames >= DUE_FRAMES or self.new_cost >= DUE_COST
            or self.new_frames * 4 >= window.frames or self.new_cost * 4 >= window.bytes
        )

    def acknowledge(self, pair_limit):
        """The number and the ranges that the next acknowledgement tells. More ranges wait for the one after it."""
        self.acknowledge_processed()
        ranges, end = [], self.processed
        for place in sorted(self.untold):
            if ranges and place == end + 1:
                ranges[-1] += 1
            elif len(ranges) == 2 * pair_limit:
                break
            else:
                ranges += [place - end - 1, 1]
            end = place
            self.untold.remove(place)
            self.forget_cost(place)
        return self.processed, ranges

    def acknowledge_processed(self):
        for place in range(self.acknowledged + 1, self.processed + 1):
            self.forget_cost(place)
        self.acknowledged = self.processed
        self.new_frames = self.new_cost = 0

    def forget_cost(self, place):
        self.cost -= self.costs.pop(place, 0)

    def reopen(self):
        """An opening tells how far this lane is. What ranges told may have been lost."""
        self.acknowledge_processed()
        self.untold = set(self.early)
        self.told_received = self.received

    def drop_after(self, place):
        """Counts as not received what came after this place."""
        for dropped in range(place + 1, self.received + 1):
            self.forget_cost(dropped)
        self.received = place
