"""The frames of sessions: how they stand on the wire, what they cost, and whether they have a place."""

import os
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError


def load(name):
    files = descriptor_pb2.FileDescriptorSet.FromString(Path(os.environ["LIFELINE_SESSION_DESCRIPTORS"]).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


Frame = load("lifeline.session.v1.Frame")

KIND_NUMBERS = {field.name: field.number for field in Frame.DESCRIPTOR.fields}
KIND_NAMES = {number: name for name, number in KIND_NUMBERS.items()}

CLOSED, DRAINING, REPLACED, REFUSED, VERSION, VIOLATION, FULL = range(1, 8)

DEFAULT_FRAME_LIMIT = 4 << 20
SMALLEST_FRAME_LIMIT = 4_096
# Frames of a client until the welcome.
OPENING_FRAME_LIMIT = 64 << 10
SMALLEST_WINDOW_BYTES = 4_096
SMALLEST_CREDIT = 64 << 10
METHOD_LIMIT = 1_024
METHOD_NAME_LIMIT = 256
PAIR_LIMIT = 1_024
LONGEST_TIMEOUT = (1 << 32) - 1
GOODBYE_TEXT_LIMIT = 1_000

ENTRY_LIMIT = 128
# The encoded bytes of the metadata, where they are not 64 KiB.
METADATA_BYTES = {"hello": 16 << 10}
# The number of the field in each kind that has metadata.
METADATA_FIELDS = {
    "hello": 9, "welcome": 9, "request": 5, "push": 2, "unplaced_push": 2, "response": 5, "urgent_response": 5,
}
NAME_FIELD, DETAILS_FIELD = 8, 4

BLANK = b"\x7a\x00"


class Violation(Exception):
    """The other side broke the rules."""


@dataclass
class Received:
    """A frame that came, with what its bytes say and the parsed message does not."""
    data: bytes
    # 0: the frame has no kind.
    number: int
    frame: Frame

    @property
    def kind(self):
        """The name of the kind; None for an unknown one."""
        return KIND_NAMES.get(self.number)

    @property
    def message(self):
        return getattr(self.frame, self.kind)

    @property
    def cost(self):
        return cost(self.data)

    @property
    def is_ordinary(self):
        return 8 <= self.number <= 31

    @property
    def is_urgent(self):
        return 32 <= self.number <= 47

    @property
    def has_too_many_entries(self):
        """Whether the metadata or the details are above the limits. Each entry on the wire counts."""
        if self.kind not in METADATA_FIELDS:
            return False
        entries = details = size = 0
        content = next(field.content for field in fields(self.data) if field.number == self.number)
        for field in fields(content):
            if field.number == METADATA_FIELDS[self.kind]:
                entries += 1
                size += field.size
            elif self.kind == "hello" and field.number == NAME_FIELD:
                size += field.size
            elif self.kind in ("response", "urgent_response") and field.number == DETAILS_FIELD:
                details += 1
        return entries > ENTRY_LIMIT or details > ENTRY_LIMIT or size > METADATA_BYTES.get(self.kind, 64 << 10)


@dataclass
class Field:
    """A field as it stands on the wire."""
    number: int
    wire_type: int
    # Of a length-delimited field.
    content: bytes
    # The encoded bytes, with tag and length.
    size: int


def parse(data):
    try:
        kinds = [field.number for field in fields(data) if field.wire_type == 2]
        frame = Frame.FromString(data)
    except DecodeError as error:
        raise Violation(f"a frame is no message: {error}") from None
    if len(kinds) > 1:
        raise Violation(f"a frame has the kinds {', '.join(map(str, kinds))}")
    return Received(data, kinds[0] if kinds else 0, frame)


def fields(data):
    position = 0
    while position < len(data):
        start = position
        tag, position = read_varint(data, position)
        number, wire_type, content = tag >> 3, tag & 7, b""
        if wire_type == 0:
            _, position = read_varint(data, position)
        elif wire_type == 1:
            position += 8
        elif wire_type == 2:
            length, position = read_varint(data, position)
            content = data[position:position + length]
            position += length
        elif wire_type == 5:
            position += 4
        else:
            raise DecodeError(f"wire type {wire_type}")
        if position > len(data) or not number:
            raise DecodeError("truncated, or field 0")
        yield Field(number, wire_type, content, position - start)


def read_varint(data, position):
    """The number, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise DecodeError("truncated")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise DecodeError("a varint has more than 10 bytes")


def cost(data):
    """What windows and credits count of a frame."""
    return len(data) + 64


def encode(kind, message):
    """A frame of this kind, without the length in front."""
    return with_tag(kind, message.SerializeToString())


def encode_request(message):
    """Writes the time-out first and padded, so that `set_timeout` can change it in place."""
    without_timeout = type(message)()
    without_timeout.CopyFrom(message)
    without_timeout.timeout_milliseconds = 0
    return with_tag("request", b"\x08" + padded(1) + without_timeout.SerializeToString())


def set_timeout(data, seconds):
    """A frame of `encode_request` with another time-out. Less than a millisecond counts as one: 0 is no limit."""
    _, position = read_varint(data, 1)
    milliseconds = min(max(1, int(seconds * 1000)), LONGEST_TIMEOUT)
    return data[:position + 1] + padded(milliseconds) + data[position + 6:]


def padded(number):
    """A varint of five bytes."""
    return bytes(number >> shift & 0x7F | (0x80 if shift < 28 else 0) for shift in range(0, 35, 7))


def with_tag(kind, content):
    return varint(KIND_NUMBERS[kind] << 3 | 2) + varint(len(content)) + content


def delimited(data):
    return varint(len(data)) + data


def varint(number):
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


class Terms:
    """What a side takes. In a session windows and frames only grow, and the credit stays that of the first opening."""

    def __init__(self, frames=65_536, bytes=8 << 20, credit=256 << 10, maximum_requests=1_024, maximum_frame=4 << 20):
        self.frames, self.bytes, self.credit = frames, bytes, credit
        self.maximum_requests, self.maximum_frame = maximum_requests, maximum_frame

    def fill(self, terms):
        terms.window_frames, terms.window_bytes, terms.credit = self.frames, self.bytes, self.credit
        terms.maximum_requests, terms.maximum_frame = self.maximum_requests, self.maximum_frame

    @staticmethod
    def of(terms):
        if terms.window_frames < 1 or terms.window_bytes < SMALLEST_WINDOW_BYTES:
            raise Violation(f"a window of {terms.window_frames} frames and {terms.window_bytes} bytes")
        if terms.credit < SMALLEST_CREDIT:
            raise Violation(f"a credit of {terms.credit}")
        if 0 < terms.maximum_frame < SMALLEST_FRAME_LIMIT:
            raise Violation(f"frames of at most {terms.maximum_frame} bytes")
        return Terms(
            terms.window_frames, terms.window_bytes, terms.credit, terms.maximum_requests or 1,
            terms.maximum_frame or DEFAULT_FRAME_LIMIT,
        )

    def after(self, earlier):
        """What holds when these terms follow earlier ones of the same session."""
        if not earlier:
            return self
        return Terms(
            max(self.frames, earlier.frames), max(self.bytes, earlier.bytes), earlier.credit, self.maximum_requests,
            max(self.maximum_frame, earlier.maximum_frame),
        )
