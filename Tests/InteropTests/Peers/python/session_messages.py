"""The frames of sessions, from the descriptors that protoc wrote."""

import os
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def load(name):
    files = descriptor_pb2.FileDescriptorSet.FromString(Path(os.environ["LIFELINE_SESSION_DESCRIPTORS"]).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


Frame = load("lifeline.session.v1.Frame")

CLOSED, DRAINING, REPLACED, REFUSED, VERSION, VIOLATION, FULL = range(1, 8)

DEFAULT_FRAME_LIMIT = 4 << 20
OVERHEAD_LIMIT = 256
# What windows count of each message beside its content.
MESSAGE_SIZE = 768
ENTRY_LIMIT = 128
METADATA_LIMIT = 64 << 10
SMALLEST_WINDOW = 4 << 10


def message_size(frame):
    """What windows count of a frame that has a place."""
    return MESSAGE_SIZE + content_size(frame)


def has_too_many_entries(message):
    """Whether a request, a response or a push has more metadata or details than one may have."""
    size = sum(64 + len(name.encode()) + len(value.encode()) for name, value in message.metadata.items())
    details = getattr(message, "details", [])
    return len(message.metadata) > ENTRY_LIMIT or size > METADATA_LIMIT or len(details) > ENTRY_LIMIT


def content_size(frame):
    kind = frame.WhichOneof("kind")
    if kind not in ("request", "response", "push"):
        return 0
    message = getattr(frame, kind)
    size = len(message.payload)
    size += sum(64 + len(name.encode()) + len(value.encode()) for name, value in message.metadata.items())
    if kind != "response":
        return size + len(message.method.encode())
    size += sum(64 + len(detail.type_url.encode()) + len(detail.value) for detail in message.details)
    return size + len(message.message.encode())


def delimited(frame):
    data = frame.SerializeToString()
    return varint(len(data)) + data


def varint(number):
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
