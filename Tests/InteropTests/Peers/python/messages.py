"""The messages of the tests, and how Python reads, writes and compares them."""

import os
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, text_format
from google.protobuf.proto import parse_length_prefixed, serialize_length_prefixed

from corpus import corpus

__all__ = ["ChatMessage", "check", "corpus", "read_all", "read_text", "report", "write_all", "write_text"]

# The line after a message in text format.
SEPARATOR = "---"


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


def write_text(messages, form, stream):
    """`form`: "json", an object a line, or "text", text format with a line behind each message."""
    for message in messages:
        if form == "json":
            stream.write(json_format.MessageToJson(message, indent=None) + "\n")
        else:
            stream.write(text_format.MessageToString(message) + SEPARATOR + "\n")
    stream.flush()


def read_text(form, stream):
    if form == "json":
        return [json_format.Parse(line, ChatMessage()) for line in stream]
    messages, lines = [], []
    for line in stream:
        if line.rstrip("\n") == SEPARATOR:
            messages.append(text_format.Parse("".join(lines), ChatMessage()))
            lines = []
        else:
            lines.append(line)
    assert not lines, "the last message has no end"
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
