"""Python's protobuf as a strict reader and a printer of JSON, for the differential tests. See oracle.py.

P  parses the text: the encoded message, or the reason for refusing it
I  likewise, with ignore_unknown_fields
0 to 7: prints the encoded message and compares the result with the text, which stands for the same values: the bits are
   1 for names as in the schema, 2 for enums as numbers, 4 for fields without presence that have their default.
   Refused when they differ: the result is Python's text. Refused, too, when Python cannot print the message: the
   result begins with "!".
"""

import decimal
import json
import re
import struct
import types

from google.protobuf import descriptor, json_format

import oracle

# Numbers below it can be packed as a float.
FLOAT_LIMIT = 3.4e38


# This makes Python's protobuf exact and strict about numbers and enums. They are everywhere in the texts, so exceptions
# for them would hide real differences. Its other leniencies are exceptions in json_exceptions.cc.


class Exact(float):
    """A number with a point or an exponent, or -0, which is converted to an integer without being rounded."""

    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.text = text
        return self

    def is_integer(self):
        return self.is_zero() or self.decimal() == self.decimal().to_integral_value()

    def __int__(self):
        if self.is_zero():
            return 0
        # Expanding more digits than any field has would take all memory.
        return OUT_OF_RANGE if self.decimal().adjusted() > 40 else int(self.decimal())

    def is_zero(self):
        return not any(digit in "123456789" for digit in re.split("[eE]", self.text)[0])

    def decimal(self):
        return decimal.Decimal(self.text)


OUT_OF_RANGE = 1 << 200
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def loads(text, **options):
    def refuse(constant):
        raise ValueError(constant + " is not JSON")

    def parse_int(digits):
        return Exact(digits) if digits == "-0" else int(digits)

    return json.loads(text, parse_int=parse_int, parse_float=Exact, parse_constant=refuse, **options)


convert_integer = json_format._ConvertInteger
convert_scalar = json_format._ConvertScalarFieldValue


def convert_exact_integer(value):
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = Exact(value)
    return convert_integer(value)


def convert_strict_enum(value, field, path, *rest, **options):
    if field.cpp_type == descriptor.FieldDescriptor.CPPTYPE_ENUM:
        if isinstance(value, str) and value not in field.enum_type.values_by_name:
            raise json_format.EnumStringValueParseError("no name of the enum")
        if isinstance(value, bool) or isinstance(value, float) and not value.is_integer():
            raise json_format.ParseError("neither a name nor a number of the enum")
        if is_number(value) and not -(1 << 31) <= int(value) < 1 << 31:
            raise json_format.ParseError("more than 32 bits")
    return convert_scalar(value, field, path, *rest, **options)


json_format.json = types.SimpleNamespace(loads=loads, dumps=json.dumps)
json_format._ConvertInteger = convert_exact_integer
json_format._ConvertScalarFieldValue = convert_strict_enum


def answer(messages, kind, name, text, encoded):
    if kind in "PI":
        return True, parse(messages, name, text, kind == "I")
    return compare(messages, name, text, encoded, int(kind))


def parse(messages, name, text, ignores_unknown):
    message = messages.new(name)
    json_format.Parse(
        text.decode(),
        message,
        ignore_unknown_fields=ignores_unknown,
        descriptor_pool=messages.pool,
        max_recursion_depth=oracle.DEPTH,
    )
    return message.SerializePartialToString()


def compare(messages, name, text, encoded, options):
    message = messages.new(name)
    message.MergeFromString(encoded)
    expected = json_format.MessageToJson(
        message,
        preserving_proto_field_name=bool(options & 1),
        use_integers_for_enums=bool(options & 2),
        always_print_fields_with_no_presence=bool(options & 4),
        descriptor_pool=messages.pool,
        indent=None,
    )
    # Its option for enums prints google.protobuf.NullValue as 0, which has to be null.
    null = 0 if options & 2 else None
    return is_same(json.loads(text), json.loads(expected), null), expected.encode()


def is_same(ours, theirs, null):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(is_same(ours[key], theirs[key], null) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(is_same(*pair, null) for pair in zip(ours, theirs))
    if ours is None:
        return theirs is None or theirs is null
    if is_number(ours) and is_number(theirs) and ours != theirs:
        # Python prints a float with more or fewer digits than needed. The float is the same.
        return abs(ours) < FLOAT_LIMIT and struct.pack("f", ours) == struct.pack("f", theirs)
    return is_number(ours) == is_number(theirs) and ours == theirs


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


if __name__ == "__main__":
    oracle.run(answer)
