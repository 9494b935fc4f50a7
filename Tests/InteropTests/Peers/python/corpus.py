"""The messages that every peer is tested with, by name of the corpus."""

import math
import random


def corpus(name, ChatMessage):
    corpora = {"empty": empty, "small": small, "every-field": every_field, "printable": printable, "large": large}
    return corpora[name](ChatMessage)


def empty(ChatMessage):
    return [ChatMessage() for _ in range(3)]


def small(ChatMessage):
    return [ChatMessage(id=str(number), text="Grüezi " * (number % 5), position=number - 50) for number in range(100)]


def large(ChatMessage):
    source = random.Random(20260101)
    messages = []
    for size in [2 << 20, 3 << 20, (4 << 20) - 64]:
        message = ChatMessage()
        message.voice = source.randbytes(size)
        messages.append(message)
    return messages


def every_field(ChatMessage):
    return [rich(ChatMessage, extreme) for extreme in EXTREMES] + bodies(ChatMessage) + [thread(ChatMessage, 20)]


def printable(ChatMessage):
    """All fields, with times that JSON has words for: those of the years 1 to 9999."""
    messages = every_field(ChatMessage)
    times = [-62_135_596_800, -1, 0, 1, 1_700_000_000, 253_402_300_799]
    for number, message in enumerate(messages):
        if message.HasField("sent_at"):
            message.sent_at.seconds = times[number % len(times)]
            message.sent_at.nanos = number * 1_000
    return messages


EXTREMES = [
    dict(i32=0, i64=0, u32=0, u64=0, real=0.0, text="", data=b""),
    dict(i32=1, i64=1, u32=1, u64=1, real=1.5, text="a", data=b"a"),
    dict(i32=2**31 - 1, i64=2**63 - 1, u32=2**32 - 1, u64=2**64 - 1, real=math.inf, text="日本語 🎉", data=bytes(range(256))),
    dict(i32=-2**31, i64=-2**63, u32=2**31, u64=2**63, real=-math.inf, text="NUL \0 inside", data=b"\0"),
    dict(i32=-1, i64=-1, u32=127, u64=128, real=-0.0, text="\U0010FFFF", data=b"\xff\xfe"),
    dict(i32=-1, i64=-1, u32=127, u64=128, real=math.nan, text="\u0301", data=b""),
]


def rich(ChatMessage, value):
    message = ChatMessage(
        id=value["text"], to=value["text"], text=value["text"], flags=value["i32"], ttl=value["u32"], nonce=value["u64"],
        utc_offset=value["i32"], position=value["i64"], text_checksum=value["u32"], zone_version=value["i64"],
        # An open enum: proto3 keeps numbers that it does not know.
        kind=value["i32"], kinds_seen=[1, 0, value["i32"], 3],
        mentions=[0, 1, 127, 128, 2**32, value["u64"]], signal=[0.5, value["real"], -0.0],
    )
    setattr(message, "from", value["text"])
    message.author.id = value["u64"]
    message.author.name = value["text"]
    message.author.avatar_url = value["text"]
    message.author.level = value["i32"]
    message.author.verified = value["i32"] < 0
    for _ in range(2):
        message.attachments.add(url=value["text"], sha256=value["data"], size=value["u64"], content=value["data"])
    message.attachments.add()
    message.headers.update({"": "", "k": value["text"], value["text"]: "v"})
    message.reactions.update({"👍": value["i64"], "zero": 0})
    message.sent_at.seconds = value["i64"]
    message.sent_at.nanos = value["i32"]
    message.reply_to.text = value["text"]
    message.poll.question = value["text"]
    message.poll.choices.extend(["", value["text"]])
    message.poll.votes.update({0: 0, value["u64"]: value["u32"]})
    message.poll.closes_at.SetInParent()
    return message


def bodies(ChatMessage):
    location = ChatMessage()
    location.location.latitude = -0.0
    location.location.longitude = math.pi
    location.location.accuracy = 1e-45
    location.location.altitude = -2**31
    emptied = ChatMessage()
    emptied.location.SetInParent()
    return [location, emptied, ChatMessage(sticker=""), ChatMessage(sticker="😀"), ChatMessage(voice=b""),
            ChatMessage(voice=b"\0\1"), ChatMessage(ttl=0)]


def thread(ChatMessage, depth):
    message = ChatMessage(text="first")
    for level in range(depth):
        answer = ChatMessage(text=f"answer {level}")
        answer.reply_to.CopyFrom(message)
        message = answer
    return message
