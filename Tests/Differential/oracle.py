"""What json_oracle.py and text_oracle.py share: Python's protobuf as a process that the differential tests ask.

Usage: json_oracle.py DESCRIPTOR_SET
       text_oracle.py DESCRIPTOR_SET

Reads batches of requests from stdin and answers each batch on stdout; oracle.cc is the other side. All numbers are 32
bits, little-endian. A batch is the number of its requests, and for each: its kind, one byte; the name of a message
type, a text, and an encoded message, each behind its length. A batch of answers has for each request one byte, 1 for
accepted, and a result behind its length.
"""

import struct
import sys
import threading

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Above the depth of any message here.
DEPTH = 1200

# Parsing is recursive. A text deeper than this is refused.
sys.setrecursionlimit(20_000)
threading.stack_size(256 << 20)


class Messages:
    """All message types of the tests."""

    def __init__(self, path):
        self.pool = descriptor_pool.DescriptorPool()
        self.classes = {}
        files = descriptor_pb2.FileDescriptorSet()
        with open(path, "rb") as file:
            files.ParseFromString(file.read())
        for file in files.file:
            adapt_fields(file)
            self.pool.Add(file)

    def new(self, name):
        if name not in self.classes:
            self.classes[name] = message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))
        return self.classes[name]()


def adapt_fields(scope):
    """Python refuses a message with two fields of the same JSON name, and the smallest number as a default. The tests
    make no message with such names, and JSON has nothing to do with defaults."""
    for message in getattr(scope, "message_type", []) or getattr(scope, "nested_type", []):
        names = set()
        for field in message.field:
            field.ClearField("default_value")
            if field.json_name in names:
                field.json_name = field.name
            names.add(field.json_name)
        adapt_fields(message)


class Stream:
    def __init__(self, file):
        self.file = file

    def bytes(self, count):
        data = self.file.read(count)
        if len(data) != count:
            raise EOFError
        return data

    def number(self):
        return struct.unpack("<I", self.bytes(4))[0]

    def text(self):
        return self.bytes(self.number())


def main(answer):
    messages = Messages(sys.argv[1])
    stream = Stream(sys.stdin.buffer)
    while True:
        # The whole batch is read before anything is written, so that neither side waits for the other.
        requests = [
            (stream.bytes(1).decode(), stream.text().decode(), stream.text(), stream.text())
            for _ in range(stream.number())
        ]
        for request in requests:
            try:
                accepted, result = answer(messages, *request)
            except Exception as error:  # whatever it is, the text or the message is refused
                accepted, result = False, ("!" + str(error)).encode(errors="replace")
            sys.stdout.buffer.write(struct.pack("<BI", accepted, len(result)) + result)
        sys.stdout.buffer.flush()


def run(answer):
    """Answers all requests by `answer(messages, kind, name, text, encoded)`, which returns whether it accepts, and its
    result, or raises the reason for refusing."""

    def until_the_end():
        try:
            main(answer)
        except EOFError:
            pass  # the tests are done

    threading.Thread(target=until_the_end).start()
