"""The two directions of a lane: what was sent and is not processed by the other side, and what came from there."""

import time
from collections import deque
from dataclasses import dataclass
from typing import Optional

from session_messages import Frame, message_size


class Violation(Exception):
    """The other side broke the rules."""


@dataclass(eq=False)
class Entry:
    """A message on its way out. Its frame gets a place when it is sent."""
    frame: Frame
    size: int
    # By the monotonic clock.
    deadline: Optional[float] = None

    @property
    def begins(self):
        """Whether it begins something, which is not done on a connection that drains."""
        kind = self.frame.WhichOneof("kind")
        return kind == "request" or kind == "push" and not self.frame.push.serial

    @property
    def outlives_its_session(self):
        """Whether it means the same in another session."""
        return self.begins

    def set_timeout(self):
        """The time that is left counts from each sending. Of a request whose time is over only the place is left."""
        if self.deadline is None or not self.frame.HasField("request"):
            return
        left = self.deadline - time.monotonic()
        if left > 0:
            self.frame.request.timeout_milliseconds = max(1, int(left * 1000))
        else:
            self.frame.ClearField("request")


class Outgoing:
    def __init__(self, place_field):
        self.place_field = place_field
        self.waiting = deque()
        # Sent and not processed by the other side, from place `processed` + 1 to `sent`.
        self.kept = deque()
        self.kept_bytes = 0
        self.sent = self.processed = 0
        # The last one that was processed.
        self.last = []

    def add(self, frame, deadline=None):
        entry = Entry(frame, message_size(frame), deadline)
        self.waiting.append(entry)
        return entry

    def has_room(self, window):
        """Whether the window has room for the first that waits."""
        size = self.waiting[0].size
        return len(self.kept) < window.frames and self.kept_bytes + size <= window.bytes

    def next(self):
        entry = self.waiting.popleft()
        self.sent += 1
        setattr(entry.frame, self.place_field, self.sent)
        self.kept.append(entry)
        self.kept_bytes += entry.size
        return entry

    def acknowledge(self, place):
        if place > self.sent:
            raise Violation(f"it acknowledged {self.place_field} {place}, but {self.sent} was the last")
        while self.processed < place:
            self.processed += 1
            self.last = [self.kept.popleft()]
            self.kept_bytes -= self.last[0].size

    def resume(self, processed, received):
        """Takes the other side's progress, and returns what it is to be sent again."""
        if processed < self.processed:
            raise Violation(f"it is back at {self.place_field} {processed}, after {self.processed}")
        if received > self.sent:
            raise Violation(f"it received {self.place_field} {received}, but {self.sent} was the last")
        self.acknowledge(processed)
        first = max(received, processed) - self.processed
        return list(self.kept)[first:]


class Incoming:
    def __init__(self, place_field):
        self.place_field = place_field
        self.received = self.processed = self.acknowledged = 0
        # Processed before an earlier one was.
        self.early = set()
        # Sizes of those from place `acknowledged` + 1 to `received`.
        self.sizes = deque()
        self.bytes = 0
        self.processed_bytes = 0

    def receive(self, place, size, window):
        """Whether the frame is new."""
        if place <= self.received:
            return False
        if place > self.received + 1:
            raise Violation(f"{self.place_field} {place} came after {self.received}")
        if len(self.sizes) >= window.frames or self.bytes + size > window.bytes:
            raise Violation(f"{self.place_field} {place} is beyond the window")
        self.received = place
        self.sizes.append(size)
        self.bytes += size
        return True

    def finish(self, place):
        self.early.add(place)
        while self.processed + 1 in self.early:
            self.processed += 1
            self.early.remove(self.processed)
            self.processed_bytes += self.sizes[self.processed - self.acknowledged - 1]

    def wants_acknowledgement(self, window):
        """Whether so much was processed that the other side should know now."""
        frames = self.processed - self.acknowledged
        return (
            frames >= 16 or self.processed_bytes > 32 << 10
            or frames > window.frames // 4 or self.processed_bytes > window.bytes // 4
        )

    def acknowledge(self):
        """The place that the next frame acknowledges, 0 if there is nothing new."""
        if self.processed == self.acknowledged:
            return 0
        while self.acknowledged < self.processed:
            self.acknowledged += 1
            self.bytes -= self.sizes.popleft()
        self.processed_bytes = 0
        return self.processed
