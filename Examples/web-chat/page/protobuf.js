// Protobuf's wire format (https://protobuf.dev/programming-guides/encoding), as much of it as messages without maps,
// oneofs and floating point need. 64-bit numbers are BigInts, 32-bit ones Numbers.

/** The input is malformed. The error message is for the user, and contains nothing of the input. */
export class WireError extends Error {
  name = "WireError";
}

const VARINT = 0, FIXED64 = 1, DELIMITED = 2, GROUP_START = 3, GROUP_END = 4, FIXED32 = 5;

/** How deep groups and messages may be nested, as in Lifeline. */
const MAXIMUM_DEPTH = 100;

/** The wire format of a field type. An absent field has its `initial` value, which is not written. */
const types = {
  string: { wireType: DELIMITED, initial: "", read: (r) => r.string(), write: (w, v) => w.bytes(utf8.encode(v)) },
  enum: { wireType: VARINT, initial: 0, read: (r) => int32(r.varint()), write: (w, v) => w.varint(signed(32, v)) },
  int32: { wireType: VARINT, initial: 0, read: (r) => int32(r.varint()), write: (w, v) => w.varint(signed(32, v)) },
  int64: {
    wireType: VARINT, initial: 0n,
    read: (r) => BigInt.asIntN(64, r.varint()),
    write: (w, v) => w.varint(signed(64, v)),
  },
  uint64: { wireType: VARINT, initial: 0n, read: (r) => r.varint(), write: (w, v) => w.varint(unsigned(64, v)) },
  // Zigzag: 0, -1, 1, -2 … are 0, 1, 2, 3 …
  sint64: {
    wireType: VARINT, initial: 0n,
    read: (r) => { const v = r.varint(); return (v >> 1n) ^ -(v & 1n); },
    write: (w, v) => { signed(64, v); w.varint((v << 1n) ^ (v >> 63n)); },
  },
  fixed64: { wireType: FIXED64, initial: 0n, read: (r) => r.fixed64(), write: (w, v) => w.fixed64(unsigned(64, v)) },
};

const utf8 = new TextEncoder();
const strictUTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A type of message.
 *
 * `fields` names each field with its number and its type: `{ text: [4, "string"], mentions: [7, "uint64", "repeated"],
 * author: [10, User] }`. A message is an object with these names; one that is absent reads as its initial value, a
 * message as undefined.
 */
export class MessageType {
  #fields;
  #byNumber;

  constructor(fields) {
    this.#fields = Object.entries(fields).map(([name, [number, type, label]]) => ({
      name, number, isRepeated: label === "repeated",
      ...(type instanceof MessageType ? { wireType: DELIMITED, message: type } : types[type]),
    }));
    this.#byNumber = new Map(this.#fields.map((field) => [field.number, field]));
  }

  /** The message in `bytes`. Fields that the type does not have are skipped. Throws `WireError`. */
  decode(bytes) {
    return this.#decode(bytes, this.#initial(), 0);
  }

  #initial() {
    return Object.fromEntries(this.#fields.map(({ name, isRepeated, initial }) => [name, isRepeated ? [] : initial]));
  }

  #decode(bytes, message, depth) {
    if (depth > MAXIMUM_DEPTH) throw new WireError("it is nested too deeply");
    const reader = new Reader(bytes);
    while (!reader.isAtEnd) {
      const [number, wireType] = reader.tag();
      const field = this.#byNumber.get(number);
      if (field?.wireType === wireType) {
        if (field.message) {
          // A message in several parts is merged.
          const part = message[field.name] ?? field.message.#initial();
          message[field.name] = field.message.#decode(reader.bytes(), part, depth + 1);
        } else if (field.isRepeated) {
          message[field.name].push(field.read(reader));
        } else {
          message[field.name] = field.read(reader);
        }
      } else if (field?.isRepeated && wireType === DELIMITED) {
        const packed = new Reader(reader.bytes());
        while (!packed.isAtEnd) message[field.name].push(field.read(packed));
      } else {
        reader.skip(number, wireType, depth);
      }
    }
    return message;
  }

  /** The bytes of a message. Throws `RangeError` for a number that its field cannot hold. */
  encode(message) {
    const writer = new Writer();
    for (const field of this.#fields) {
      const value = message[field.name];
      if (value === undefined || value === field.initial) continue;
      if (field.message) {
        writer.tag(field.number, DELIMITED);
        writer.bytes(field.message.encode(value));
      } else if (field.isRepeated) {
        if (value.length > 0) writer.repeated(field, value);
      } else {
        writer.tag(field.number, field.wireType);
        field.write(writer, value);
      }
    }
    return writer.finish();
  }
}

/** Reads the parts of a message. */
class Reader {
  #bytes;
  #position = 0;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  get isAtEnd() {
    return this.#position === this.#bytes.length;
  }

  /** A field's number and wire type. */
  tag() {
    const tag = this.varint();
    const number = Number(tag >> 3n);
    if (tag > 0xffff_ffffn || number === 0) throw new WireError("it has a field without a valid number");
    return [number, Number(tag & 7n)];
  }

  /** A number of 64 bits, the last of which is the first one of the tenth byte. */
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const [byte] = this.#take(1);
      if (shift === 63n && byte > 1) throw new WireError("it has a number of over 64 bits");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

  fixed64() {
    const bytes = this.#take(8);
    return new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);
  }

  bytes() {
    return this.#take(this.varint());
  }

  string() {
    const bytes = this.bytes();
    try {
      return strictUTF8.decode(bytes);
    } catch {
      throw new WireError("it has text that is not UTF-8");
    }
  }

  skip(number, wireType, depth) {
    if (depth > MAXIMUM_DEPTH) throw new WireError("it is nested too deeply");
    switch (wireType) {
      case VARINT: this.varint(); break;
      case FIXED64: this.#take(8); break;
      case DELIMITED: this.bytes(); break;
      case FIXED32: this.#take(4); break;
      case GROUP_START:
        for (;;) {
          const [inner, innerType] = this.tag();
          if (innerType !== GROUP_END) this.skip(inner, innerType, depth + 1);
          else if (inner === number) return;
          else throw new WireError("it has a group that another one's end ends");
        }
      default: throw new WireError("it has a field of no known kind");
    }
  }

  /** The next bytes, `count` of them, which may be a BigInt beyond what a Number can hold. */
  #take(count) {
    if (count > this.#bytes.length - this.#position) throw new WireError("it ends inside a field");
    const start = this.#position;
    this.#position += Number(count);
    return this.#bytes.subarray(start, this.#position);
  }
}

/** Joins the parts of a message. */
class Writer {
  #parts = [];

  tag(number, wireType) {
    this.varint(BigInt(number) << 3n | BigInt(wireType));
  }

  varint(value) {
    this.#parts.push(varint(value));
  }

  fixed64(value) {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, value, true);
    this.#parts.push(bytes);
  }

  bytes(bytes) {
    this.varint(BigInt(bytes.length));
    this.#parts.push(bytes);
  }

  /** Numbers are packed after one tag; others have a tag each. */
  repeated(field, values) {
    if (field.wireType === DELIMITED) {
      for (const value of values) {
        this.tag(field.number, DELIMITED);
        field.write(this, value);
      }
    } else {
      const packed = new Writer();
      for (const value of values) field.write(packed, value);
      this.tag(field.number, DELIMITED);
      this.bytes(packed.finish());
    }
  }

  finish() {
    return concatenate(this.#parts);
  }
}

/** A number of up to 64 bits, seven bits a byte, the lowest first. Of a negative one, its two's complement. */
export function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

export function concatenate(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let position = 0;
  for (const part of parts) {
    whole.set(part, position);
    position += part.length;
  }
  return whole;
}

function int32(value) {
  return Number(BigInt.asIntN(32, value));
}

function signed(bits, value) {
  const number = BigInt(value);
  if (BigInt.asIntN(bits, number) !== number) throw new RangeError(`${value} does not fit into ${bits} bits`);
  return number;
}

function unsigned(bits, value) {
  const number = BigInt(value);
  if (BigInt.asUintN(bits, number) !== number) throw new RangeError(`${value} does not fit into ${bits} bits`);
  return number;
}
