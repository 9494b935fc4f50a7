"""Python's protobuf as a reader of text format, for the differential tests. See oracle.py.

P  parses the text: the encoded message, or the reason for refusing it
I  likewise; unknown fields and extensions are passed over
"""

import re

from google.protobuf import text_encoding, text_format

import oracle

# This makes Python's protobuf as strict about names, numbers and escapes as the specification of text format. They are
# everywhere in the texts, so exceptions for them would hide real differences. Its other leniencies are exceptions in
# text_exceptions.cc.

UNSIGNED = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")
INTEGER = re.compile(rf"-?({UNSIGNED.pattern})")
DECIMAL = re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?[fF]?")
# Python accepts letters as part of a number, as in "1and" or "inf+".
NAME = re.compile(r"-?[a-zA-Z]+")

ESCAPE = re.compile(r"""\\([abfnrtv?\\'"]|[0-7]{1,3}|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|(.|$))""")

parse_integer = text_format._ParseAbstractInteger
parse_float = text_format.ParseFloat
parse_bool = text_format.ParseBool
parse_enum = text_format.ParseEnum
unescape = text_encoding.CUnescape


def parse_strict_integer(text):
    if not INTEGER.fullmatch(text):
        raise ValueError("no integer: " + text)
    return parse_integer(text)


def parse_strict_float(text):
    if not DECIMAL.fullmatch(text) and not NAME.fullmatch(text):
        raise ValueError("no number: " + text)
    return parse_float(text)


# Of any base.
def parse_exact_bool(text):
    return parse_bool(str(parse_integer(text)) if UNSIGNED.fullmatch(text) else text)


def parse_strict_enum(field, text):
    if text[0] not in "+-0123456789":
        return parse_enum(field, text)
    number = parse_strict_integer(text)
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError("more than 32 bits")
    return parse_enum(field, str(number))


def unescape_strictly(text):
    def check(match):
        if match[2] is not None:
            raise ValueError("no escape: " + match[0])
        return "?" if match[1] == "?" else match[0]

    return unescape(ESCAPE.sub(check, text))


text_format._ParseAbstractInteger = parse_strict_integer
text_format.ParseFloat = parse_strict_float
text_format.ParseBool = parse_exact_bool
text_format.ParseEnum = parse_strict_enum
text_encoding.CUnescape = unescape_strictly

Tokenizer = text_format.Tokenizer
Tokenizer._TOKEN = re.compile(Tokenizer._TOKEN.pattern.replace("[0-9a-zA-Z_+-]*", "[0-9a-zA-Z_]*"))
Tokenizer._WHITESPACE_OR_COMMENT = re.compile(r"(\s|(#.*$))+", re.ASCII | re.MULTILINE)
Tokenizer._IDENTIFIER = re.compile(r"[a-zA-Z_]\w*", re.ASCII)
Tokenizer._IDENTIFIER_OR_NUMBER = re.compile(rf"([a-zA-Z_]\w*|{UNSIGNED.pattern})$", re.ASCII)


def answer(messages, kind, name, text, _):
    message = messages.new(name)
    ignores_unknown = kind == "I"
    text_format.Parse(
        text.decode(),
        message,
        allow_unknown_extension=ignores_unknown,
        allow_unknown_field=ignores_unknown,
        descriptor_pool=messages.pool,
        max_recursion_depth=oracle.DEPTH,
    )
    return True, message.SerializePartialToString()


if __name__ == "__main__":
    oracle.run(answer)
