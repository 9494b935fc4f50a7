"""The messages of the tests, and how Python reads, writes and compares them."""

import os
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.proto import parse_length_prefixed, serialize_length_prefixed

from corpus import corpus

__all__ = ["ChatMessage", "check", "corpus", "read_all", "report", "write_all"]


def load_chat_message():
    """The message class, from the descriptors that protoc wrote: needs no generated code of a certain version."""
    files = descriptor_pb2.FileDescriptorSet.FromString(Path(os.environ["LIFELINE_DESCRIPTORS"]).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("sample.chat.v1.ChatMessage"))


ChatMessage = load_chat_message()


def write_all(messages, stream):
    for message in messages:
        serialize_length_prefixed(message, stream)
    stream.flush()


def read_all(stream):
    messages = []
    while (message := parse_length_prefixed(ChatMessage, stream)) is not None:
        messages.append(message)
    return messages


def check(received, expected):
    """Compares by deterministic bytes, since a NaN does not equal itself."""
    if len(received) != len(expected):
        return f"{len(received)} messages came, {len(expected)} were expected"
    for index, (left, right) in enumerate(zip(received, expected)):
        if left.SerializeToString(deterministic=True) != right.SerializeToString(deterministic=True):
            return f"message {index} differs:\n{left}\nwas expected to be\n{right}"
    return None


def report(problem):
    if problem:
        print(problem[:4000], file=sys.stderr)
        sys.exit(1)
