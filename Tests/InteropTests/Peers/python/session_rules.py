"""The rules that `hostile-peer` breaks, as the frames that break them: see ../README.md."""

from messages import ChatMessage
from session_messages import ENTRY_LIMIT, METHOD_LIMIT, OPENING_FRAME_LIMIT, PAIR_LIMIT, Frame, Terms, varint, with_tag

SERVICE = "interop.Peer/"
URGENT_LIMIT = 16_384
LARGEST = (1 << 64) - 1


class Raw(bytes):
    """Bytes that are no frame, and go onto the connection as they are."""


def hello(attempt=1, session=None, **progress):
    frame = Frame()
    frame.hello.minimum_version = frame.hello.maximum_version = 1
    Terms(100_000, 32 << 20, 64 << 10, 10).fill(frame.hello.terms)
    frame.hello.attempt = attempt
    if session:
        frame.hello.session_id, frame.hello.token = session.session_id, session.token
    for name, value in progress.items():
        setattr(frame.hello.progress, name, value)
    return frame


def welcome(**fields):
    frame = Frame()
    frame.welcome.version = 1
    frame.welcome.session_id, frame.welcome.token = bytes(range(16)), bytes(range(16, 32))
    frame.welcome.kept_milliseconds = 120_000
    Terms(100_000, 32 << 20, 64 << 10, 10).fill(frame.welcome.terms)
    for name, value in fields.items():
        setattr(frame.welcome, name, value)
    return frame


def with_terms(frame, **fields):
    terms = (frame.hello if frame.HasField("hello") else frame.welcome).terms
    for name, value in fields.items():
        setattr(terms, name, value)
    return frame


def without_terms(frame):
    (frame.hello if frame.HasField("hello") else frame.welcome).ClearField("terms")
    return frame


def of_kind(kind, **fields):
    frame = Frame()
    message = getattr(frame, kind)
    message.SetInParent()
    for name, value in fields.items():
        if name == "ranges":
            message.ranges.extend(value)
        else:
            setattr(message, name, value)
    return frame


def method(number=1, name="Note"):
    return of_kind("method", number=number, name=SERVICE + name if name else "")


def push(payload=b"", method=1):
    return of_kind("push", method=method, payload=payload)


def request(serial=1, method=1, **fields):
    return of_kind("request", serial=serial, method=method, **fields)


def part(serial=1, payload=b""):
    return of_kind("request_part", serial=serial, payload=payload)


def end(serial=1):
    return of_kind("request_end", serial=serial)


def acknowledgement(**fields):
    return of_kind("acknowledgement", **fields)


def with_metadata(frame, count=ENTRY_LIMIT + 1, size=0):
    """As many entries of metadata, with values of this size."""
    message = getattr(frame, frame.WhichOneof("kind"))
    for number in range(count):
        message.metadata[f"{number}"] = "x" * size
    return frame


def with_details(frame):
    for _ in range(ENTRY_LIMIT + 1):
        frame.urgent_response.details.add()
    return frame


def with_text_that_is_none():
    """A method whose name is not UTF-8."""
    return method(1, "Nöte").SerializeToString().replace("ö".encode(), b"\xff\xfe")


def with_entry_twice(frame, count):
    """The same entry of the metadata again and again: each one on the wire counts."""
    data = frame.SerializeToString()
    entry = b"\x12\x03\x0a\x01k"
    content = data[2:] + count * entry
    return with_tag(frame.WhichOneof("kind"), content)


# A text of 72 bytes in a method of 2 bytes.
TRUNCATED = b"\x72\x02\x12\x48"
NO_MESSAGE = b"\x07\x07\x07"
LONG_LENGTH = Raw(b"\x80" * 5 + b"\x01")
UNKNOWN_KIND = varint(31 << 3 | 2) + b"\x04kind"
HTTP = Raw(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")


def beyond_credit(c, make):
    """As many messages as the credit takes, and one more."""
    size = 16 << 10
    count = -(-c.terms.credit // (len(make(bytes(size)).SerializeToString()) + 64))
    needed = (count + 2) * (size + 200)
    if c.terms.window_bytes < needed:
        raise SystemExit(f"the window has to be {needed} bytes or more for this rule")
    return [make(bytes(size)) for _ in range(count + 1)]


def beyond_credit_of_response(c):
    c.send(method(1, "AskCount"), request(payload=ChatMessage(id="1").SerializeToString()))
    asked = c.wait_for("request")
    return beyond_credit(c, lambda payload: of_kind("response_part", serial=asked.message.serial, payload=payload))


def beyond_window(c):
    c.send(method(1, "Block"))
    c.wait_until_acknowledged()
    return [push() for _ in range(c.terms.window_frames + 1)]


def beyond_window_of_bytes(c):
    c.send(method(1, "Block"))
    c.wait_until_acknowledged()
    return [push(bytes(c.terms.window_bytes // 2)) for _ in range(2)]


def too_many_methods(c):
    for number in range(1, METHOD_LIMIT + 1):
        c.send_in_window(method(number, f"Method{number}"))
    c.wait_until_acknowledged()
    return [method(METHOD_LIMIT + 1, "OneMore")]


def unacknowledged_responses(c):
    """Requests that are refused, and none of the refusals is acknowledged."""
    c.send(method(1, "Nothing"))
    for serial in range(1, URGENT_LIMIT + 1):
        c.send_in_window(request(serial))
    while c.received["urgent"] < URGENT_LIMIT:
        c.receive()
    return [request(URGENT_LIMIT + 1)]


# In place of a hello.
OPENINGS = {
    "first-frame-no-hello": lambda: [method()],
    "first-frame-a-ping": lambda: [of_kind("ping", number=1)],
    "hello-with-another-kind": lambda: [hello().SerializeToString() + of_kind("ping").SerializeToString()],
    "no-terms": lambda: [without_terms(hello())],
    "window-of-0-frames": lambda: [with_terms(hello(), window_frames=0)],
    "window-of-0-bytes": lambda: [with_terms(hello(), window_bytes=0)],
    "window-too-small": lambda: [with_terms(hello(), window_bytes=4_095)],
    "credit-of-0": lambda: [with_terms(hello(), credit=0)],
    "credit-too-small": lambda: [with_terms(hello(), credit=(64 << 10) - 1)],
    "frame-limit-too-small": lambda: [with_terms(hello(), maximum_frame=4_095)],
    "hello-metadata-entries": lambda: [with_metadata(hello())],
    "hello-metadata-bytes": lambda: [with_metadata(hello(), 100, 170)],
    "hello-name-too-long": lambda: [of_name("x" * (16 << 10))],
    # Four that end the connection without a goodbye.
    "hello-too-long": lambda: [Raw(varint(OPENING_FRAME_LIMIT + 1))],
    "hello-no-message": lambda: [NO_MESSAGE],
    "hello-truncated-inside": lambda: [b"\x0a\x02\x42\x48"],
    "hello-length-of-6-bytes": lambda: [LONG_LENGTH],
}


def of_name(name):
    frame = hello()
    frame.hello.name = name
    return frame


# In a session.
FRAMES = {
    "second-hello": lambda c: [hello(attempt=2)],
    "second-welcome": lambda c: [welcome()],
    # Frames
    "frame-too-long": lambda c: [Raw(varint(c.terms.maximum_frame + 1))],
    "frame-no-message": lambda c: [NO_MESSAGE],
    "frame-truncated-inside": lambda c: [TRUNCATED],
    "text-no-utf-8": lambda c: [with_text_that_is_none()],
    "length-of-6-bytes": lambda c: [LONG_LENGTH],
    "several-kinds": lambda c: [method().SerializeToString() + of_kind("ping").SerializeToString()],
    "several-kinds-one-unknown": lambda c: [UNKNOWN_KIND + method().SerializeToString()],
    "several-kinds-unknown": lambda c: [UNKNOWN_KIND + varint(30 << 3 | 2) + b"\x00"],
    "kind-twice": lambda c: [2 * of_kind("ping", number=1).SerializeToString()],
    # Methods
    "method-skipped": lambda c: [method(2)],
    "method-0": lambda c: [method(0)],
    "method-again": lambda c: [method(1, "Note"), method(1, "Echo")],
    "method-name-again": lambda c: [method(1, "Note"), method(2, "Note")],
    "method-name-empty": lambda c: [method(1, "")],
    "method-name-too-long": lambda c: [method(1, "x" * (257 - len(SERVICE)))],
    "too-many-methods": too_many_methods,
    "push-before-method": lambda c: [push()],
    "push-method-0": lambda c: [method(), push(method=0)],
    "push-method-unknown": lambda c: [method(), push(method=2)],
    "unplaced-push-before-method": lambda c: [of_kind("unplaced_push", method=1)],
    "request-before-method": lambda c: [request()],
    "request-method-unknown": lambda c: [method(1, "Hang"), request(method=2)],
    # Entries
    "push-metadata-entries": lambda c: [method(), with_metadata(push())],
    "push-metadata-entry-again": lambda c: [method(), with_entry_twice(push(), ENTRY_LIMIT + 1)],
    "unplaced-push-metadata-entries": lambda c: [method(), with_metadata(of_kind("unplaced_push", method=1))],
    "unplaced-push-metadata-bytes": lambda c: [method(), with_metadata(of_kind("unplaced_push", method=1), 100, 700)],
    "response-metadata-entries": lambda c: [with_metadata(of_kind("urgent_response", serial=1))],
    "response-details": lambda c: [with_details(of_kind("urgent_response", serial=1))],
    # Requests and parts
    "serial-0": lambda c: [method(1, "Hang"), request(serial=0)],
    "serial-in-use": lambda c: [method(1, "Hang"), request(7), request(7)],
    "payload-with-parts": lambda c: [method(1, "Collect"), request(parts_follow=True, payload=b"\x0a\x00")],
    "part-after-end": lambda c: [method(1, "Hoard"), request(parts_follow=True), end(), part()],
    "end-after-end": lambda c: [method(1, "Hoard"), request(parts_follow=True), end(), end()],
    "part-without-parts-follow": lambda c: [method(1, "Hang"), request(), part()],
    "end-without-parts-follow": lambda c: [method(1, "Hang"), request(), end()],
    "responses-unacknowledged": unacknowledged_responses,
    # Windows and credit
    "window-frames": beyond_window,
    "window-bytes": beyond_window_of_bytes,
    "message-larger-than-window": lambda c: [method(), push(bytes(c.terms.window_bytes))],
    "credit-exceeded-by-push": lambda c: [method(1, "Block")] + beyond_credit(c, push),
    "credit-exceeded-by-part": lambda c: [method(1, "Hoard"), request(parts_follow=True)]
    + beyond_credit(c, lambda payload: part(payload=payload)),
    "credit-exceeded-by-response-part": beyond_credit_of_response,
    "credit-of-nothing": lambda c: [of_kind("credit", bytes=1 << 20)],
    "credit-of-two": lambda c: [of_kind("credit", method=1, request=1, bytes=1 << 20)],
    "credit-of-three": lambda c: [of_kind("credit", method=1, request=1, response=1, bytes=1 << 20)],
    # Acknowledgements
    "acknowledged-unsent": lambda c: [acknowledgement(ordinary=1_000)],
    "acknowledged-unsent-urgent": lambda c: [acknowledgement(urgent=1_000)],
    "range-unsent": lambda c: [acknowledgement(ranges=[1, 1_000])],
    "range-odd": lambda c: [acknowledgement(ranges=[1, 1, 1])],
    "range-skip-0": lambda c: [acknowledgement(ranges=[0, 1])],
    "range-run-0": lambda c: [acknowledgement(ranges=[1, 0])],
    "range-overflow": lambda c: [acknowledgement(ranges=[LARGEST, 2])],
    "range-overflow-of-number": lambda c: [acknowledgement(ordinary=LARGEST, ranges=[1, 1])],
    "ranges-too-many": lambda c: [acknowledgement(ranges=[1, 1] * (PAIR_LIMIT + 1))],
}

# In a session: what looks like a broken rule and is none.
TOLERATED = {
    "empty-frame": lambda c: [b""],
    "unknown-kinds": lambda c: [UNKNOWN_KIND, varint(47 << 3 | 2) + b"\x00", varint(99 << 3 | 2) + b"\x00"],
    "kind-of-another-wire-type": lambda c: [b"\x40\x01", b"\x09" + bytes(8), b"\x45" + bytes(4)],
    "kind-beside-another-wire-type": lambda c: [b"\x40\x01" + method().SerializeToString()],
    "long-varints": lambda c: [with_tag("method", b"\x08\x81" + 8 * b"\x80" + b"\x00\x12\x81\x00x")],
    "long-length": lambda c: [Raw(b"\x82\x80\x80\x80\x00" + of_kind("ping").SerializeToString())],
    "fields-in-another-order": lambda c: [with_tag("method", b"\x12\x01x\x08\x01")],
    "unknown-fields": lambda c: [
        method().SerializeToString() + b"\xc0\x0c\x01", with_tag("push", b"\x08\x01\xc2\x0c\x01x"),
    ],
    "late-frames": lambda c: [
        part(9), end(9), part(0), end(0), of_kind("response_part", serial=9), of_kind("response", serial=9),
        of_kind("urgent_response", serial=9), of_kind("urgent_response"), of_kind("cancel", serial=9),
        of_kind("cancel"),
    ],
    "unplaced-late-parts": lambda c: [
        of_kind("unplaced_request_part", serial=9), of_kind("unplaced_response_part", serial=9),
    ],
    "credit-of-unknown": lambda c: [
        of_kind("credit", **{name: 1_000}, bytes=5) for name in ("method", "request", "response")
    ],
    "lower-numbers": lambda c: [acknowledgement(), acknowledgement(ordinary=0, urgent=0)],
    "push-of-unknown-method": lambda c: [method(1, "Nothing"), push()],
    "request-of-unknown-method": lambda c: [method(1, "Nothing"), request()],
    "request-of-another-form": lambda c: [method(1, "Echo"), request(parts_follow=True), part(), end()],
    "request-metadata-entries": lambda c: [method(1, "Echo"), with_metadata(request())],
    "time-out-of-10-bytes": lambda c: [
        method(1, "Nothing"), with_tag("request", b"\x10\x01\x18\x01\x08" + 9 * b"\xff" + b"\x01"),
    ],
    "blanks": lambda c: [of_kind("blank"), of_kind("blank")],
    "cancel-before-request": lambda c: [of_kind("cancel", serial=5), method(1, "Hang"), request(5)],
    "serial-again-after-cancel": lambda c: [method(1, "Hang"), request(5), of_kind("cancel", serial=5), request(5)],
}

# In a hello that resumes. The server has sent a method (place 1), a push (2) and an urgent response (1): first the
# acknowledgement of these, then the progress of the earlier hellos, then that of the one that breaks the rule.
RESUMPTIONS = {
    "processed-ahead": (dict(ordinary=2, urgent=1), [], dict(processed=3, received=3, urgent=1)),
    "received-ahead": (dict(ordinary=2, urgent=1), [], dict(processed=2, received=3, urgent=1)),
    "urgent-ahead": (dict(ordinary=2, urgent=1), [], dict(processed=2, received=2, urgent=2)),
    "processed-behind": (dict(ordinary=2, urgent=1), [], dict(processed=1, received=2, urgent=1)),
    "urgent-behind": (dict(ordinary=2, urgent=1), [], dict(processed=2, received=2, urgent=0)),
    "received-below-processed": (dict(ordinary=1, urgent=1), [], dict(processed=2, received=1, urgent=1)),
    "received-below-range": (dict(ranges=[1, 1], urgent=1), [], dict(processed=0, received=1, urgent=1)),
    "received-behind": (
        dict(urgent=1), [dict(processed=0, received=2, urgent=1)], dict(processed=0, received=1, urgent=1),
    ),
    "processed-behind-hello": (
        dict(), [dict(processed=2, received=2, urgent=1)], dict(processed=1, received=2, urgent=1),
    ),
    # These two leave the session as it is.
    "resuming-without-terms": (dict(ordinary=2, urgent=1), [], dict(processed=2, received=2, urgent=1)),
    "attempt-again": (dict(ordinary=2, urgent=1), [], dict(processed=2, received=2, urgent=1)),
}

# In place of a server's first welcome.
WELCOMES = {
    "welcome-of-another-version": lambda: [welcome(version=9)],
    "welcome-of-version-0": lambda: [welcome(version=0)],
    "welcome-short-id": lambda: [welcome(session_id=bytes(15))],
    "welcome-long-token": lambda: [welcome(token=bytes(17))],
    "welcome-without-id": lambda: [welcome(session_id=b"", token=b"")],
    "welcome-resumed-unasked": lambda: [welcome(resumed=True)],
    "welcome-no-terms": lambda: [without_terms(welcome())],
    "welcome-window-of-0-frames": lambda: [with_terms(welcome(), window_frames=0)],
    "welcome-window-too-small": lambda: [with_terms(welcome(), window_bytes=4_095)],
    "welcome-credit-too-small": lambda: [with_terms(welcome(), credit=65_535)],
    "welcome-frame-limit-too-small": lambda: [with_terms(welcome(), maximum_frame=4_095)],
    "welcome-metadata-entries": lambda: [with_metadata(welcome())],
    "welcome-metadata-bytes": lambda: [with_metadata(welcome(), 100, 700)],
    # These cost the connection alone.
    "http-for-welcome": lambda: [HTTP],
    "hello-for-welcome": lambda: [hello()],
    "nothing-for-welcome": lambda: [],
}

# In place of a server's second welcome, for a client that has a session. The first two cost the connection alone.
RETURNS = {
    "http-for-second-welcome": lambda session: [HTTP],
    "nothing-for-second-welcome": lambda session: [],
    "violation-for-second-welcome": lambda session: [of_kind("goodbye", code=6, message="It breaks the rules.")],
    "second-welcome-received-ahead": lambda session: [returning(session, received=1_000)],
    "second-welcome-processed-ahead": lambda session: [returning(session, processed=1_000, received=1_000)],
    "second-welcome-urgent-ahead": lambda session: [returning(session, urgent=1_000)],
    "second-welcome-no-terms": lambda session: [without_terms(returning(session))],
}


def returning(session, **progress):
    frame = Frame()
    frame.welcome.CopyFrom(session)
    frame.welcome.resumed = True
    for name, value in progress.items():
        setattr(frame.welcome.progress, name, value)
    return frame
