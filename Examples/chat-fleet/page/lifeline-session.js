// Sessions of Lifeline over WebSocket, the client's side, in one file without dependencies: for browsers, and for Node.
// docs/session-protocol.md defines the wire format; names here are those of that document.
//
// It has: opening and resuming, acknowledgements, windows and credit, methods, pushes both ways, unary calls with
// timeouts and cancelling, pings, goodbyes, and reconnecting to one of several servers.
// It leaves out: streams, durable messages, messages that expire or are sent at most once. A server's requests are
// refused (UNIMPLEMENTED), and its unplaced pushes are accepted.
//
// How to write a peer in your language
//
// Read the file from top to bottom. Each part works without the parts below it, and can be tested alone:
//
//   1. Fields         numbers, texts and messages in protobuf's wire format. With a protobuf library: not needed.
//   2. Frames         the messages of the protocol, and frames in a stream of bytes that is cut anywhere.
//   3. Lanes          what was sent and not acknowledged, and what came and is not processed. Places are counted here.
//   4. SessionMachine the rules. It reads no clock, has no timers and no socket: events go in, with the time, and
//                     effects come out. So its tests need no network, and can cut it anywhere.
//   5. Session        runs the machine on a WebSocket and timers, and has promises for those who use it.
//
// Over WebSocket, binary messages carry the stream of delimited frames; message boundaries mean nothing. No subprotocol
// is named. Over TCP the stream is the same.
//
// Data from the server is bounded before it is kept: frames by MAXIMUM_FRAME, messages that wait for their handlers by
// TERMS, answers to requests and pings by MAXIMUM_URGENT and MAXIMUM_BUFFERED, text and metadata by the limits of the
// document.

// 1. Fields ---------------------------------------------------------------------------------------------------------

/** The input is malformed. The error message contains nothing of the input. */
export class WireError extends Error {
  name = "WireError";
}

const VARINT = 0, FIXED64 = 1, DELIMITED = 2, FIXED32 = 5;

const utf8 = new TextEncoder();
const strictUTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const EMPTY = new Uint8Array(0);

/** A Number below 2^53, or a BigInt of up to 64 bits, in groups of seven bits, the lowest first. */
export function varint(value) {
  const bytes = [];
  if (typeof value === "bigint") {
    // Of a negative one, its two's complement.
    let rest = BigInt.asUintN(64, value);
    for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    bytes.push(Number(rest));
  } else {
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
    bytes.push(rest);
  }
  return Uint8Array.from(bytes);
}

export function concatenate(parts) {
  if (parts.length === 1) return parts[0];
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let position = 0;
  for (const part of parts) {
    whole.set(part, position);
    position += part.length;
  }
  return whole;
}

/** A field whose content follows its length. */
function delimitedField(number, content) {
  return concatenate([varint(number * 8 + DELIMITED), varint(content.length), content]);
}

/** Reads the contents of a message. */
export class Reader {
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
    const tag = this.number();
    if (tag > 0xffff_ffff || tag < 8) throw new WireError("it has a field without a valid number");
    return [Math.floor(tag / 8), tag % 8];
  }

  /** A varint as a Number. A value that a Number cannot hold is infinite. */
  number() {
    let value = 0;
    for (let count = 0, factor = 1; count < 10; count++, factor *= 128) {
      const byte = this.#byte();
      if (count === 9 && byte > 1) break;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value <= Number.MAX_SAFE_INTEGER ? value : Infinity;
    }
    throw new WireError("it has a number of over 64 bits");
  }

  /** A varint with all of its 64 bits. */
  bigint() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      if (shift === 63n && byte > 1) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new WireError("it has a number of over 64 bits");
  }

  fixed64() {
    const bytes = this.#take(8);
    return new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);
  }

  bytes() {
    return this.#take(this.number());
  }

  string() {
    try {
      return strictUTF8.decode(this.bytes());
    } catch (error) {
      if (error instanceof WireError) throw error;
      throw new WireError("it has text that is not UTF-8");
    }
  }

  skip(wireType) {
    switch (wireType) {
      case VARINT: this.number(); break;
      case FIXED64: this.#take(8); break;
      case DELIMITED: this.bytes(); break;
      case FIXED32: this.#take(4); break;
      // Groups, too: they must not be sent, and a receiver may refuse them.
      default: throw new WireError("it has a field of no known kind");
    }
  }

  #byte() {
    if (this.isAtEnd) throw new WireError("it ends inside a field");
    return this.#bytes[this.#position++];
  }

  #take(count) {
    if (count > this.#bytes.length - this.#position) throw new WireError("it ends inside a field");
    const start = this.#position;
    this.#position += count;
    return this.#bytes.subarray(start, this.#position);
  }
}

/** The types that fields may have, in addition to messages. An absent field has its `initial` value, which is not
 *  written. */
const types = {
  string: { wireType: DELIMITED, initial: "", read: (r) => r.string(), write: (v) => utf8.encode(v) },
  bytes: { wireType: DELIMITED, initial: EMPTY, read: (r) => r.bytes(), write: (v) => v },
  bool: { wireType: VARINT, initial: false, read: (r) => r.number() !== 0, write: (v) => varint(v ? 1 : 0) },
  // The lower 32 bits of a longer number count.
  uint32: {
    wireType: VARINT, initial: 0,
    read: (r) => Number(BigInt.asUintN(32, r.bigint())),
    write: (v) => varint(integer(v, 0, 0xffff_ffff)),
  },
  int32: {
    wireType: VARINT, initial: 0,
    read: (r) => Number(BigInt.asIntN(32, r.bigint())),
    write: (v) => varint(BigInt(integer(v, -0x8000_0000, 0x7fff_ffff))),
  },
  uint64: { wireType: VARINT, initial: 0n, read: (r) => r.bigint(), write: (v) => varint(BigInt(v)) },
  int64: {
    wireType: VARINT, initial: 0n,
    read: (r) => BigInt.asIntN(64, r.bigint()),
    write: (v) => varint(BigInt(v)),
  },
  fixed64: {
    wireType: FIXED64, initial: 0n, read: (r) => r.fixed64(),
    write: (v) => {
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setBigUint64(0, v, true);
      return bytes;
    },
  },
  // uint64 as a Number: for counts and sizes below 2^53. Larger ones are as good as infinite.
  count: {
    wireType: VARINT, initial: 0, read: (r) => r.number(),
    write: (v) => varint(integer(v, 0, Number.MAX_SAFE_INTEGER)),
  },
};
// Enums have Numbers, also unknown ones.
types.enum = types.int32;

function integer(value, minimum, maximum) {
  if (Number.isInteger(value) && minimum <= value && value <= maximum) return value;
  throw new RangeError(`${value} is no whole number from ${minimum} to ${maximum}`);
}

/**
 * A type of message.
 *
 * `fields` names each field, with its number and its type: `{ text: [4, "string"], tags: [5, "string", "repeated"],
 * author: [10, User], headers: [11, "map"] }`. A map has strings as keys and values. A message is an object with these
 * names. One that is absent reads as its initial value: a message as null, a map as an empty Map.
 */
export class MessageType {
  #fields;
  #byNumber;

  constructor(fields) {
    this.#fields = Object.entries(fields).map(([name, [number, type, label]]) => ({
      name, number, isMap: type === "map", isRepeated: label === "repeated",
      ...(type === "map" ? { wireType: DELIMITED } : type instanceof MessageType
        ? { wireType: DELIMITED, initial: null, message: type } : types[type]),
    }));
    this.#byNumber = new Map(this.#fields.map((field) => [field.number, field]));
  }

  /** The message in `bytes`. Fields that the type does not have are skipped. Throws `WireError`. */
  decode(bytes) {
    return this.#decode(bytes, this.#initial());
  }

  #initial() {
    return Object.fromEntries(this.#fields.map(({ name, isMap, isRepeated, initial }) =>
      [name, isMap ? new Map() : isRepeated ? [] : initial]));
  }

  /** The tables limit the nesting of messages, whatever the input is. */
  #decode(bytes, message) {
    const reader = new Reader(bytes);
    while (!reader.isAtEnd) {
      const [number, wireType] = reader.tag();
      const field = this.#byNumber.get(number);
      if (field?.wireType === wireType) {
        if (field.isMap) {
          const { key, value } = MapEntry.decode(reader.bytes());
          message[field.name].set(key, value);
        } else if (field.message) {
          // A message in several parts is merged. For a repeated field, each part is an element.
          const part = (field.isRepeated ? null : message[field.name]) ?? field.message.#initial();
          const whole = field.message.#decode(reader.bytes(), part);
          if (field.isRepeated) message[field.name].push(whole); else message[field.name] = whole;
        } else if (field.isRepeated) {
          message[field.name].push(field.read(reader));
        } else {
          message[field.name] = field.read(reader);
        }
      } else if (field?.isRepeated && !field.message && wireType === DELIMITED) {
        const packed = new Reader(reader.bytes());
        while (!packed.isAtEnd) message[field.name].push(field.read(packed));
      } else {
        reader.skip(wireType);
      }
    }
    return message;
  }

  /** The bytes of a message. Throws `RangeError` for a number that its field cannot hold. */
  encode(message) {
    const parts = [];
    for (const field of this.#fields) {
      const value = message[field.name];
      if (value === undefined || value === null) continue;
      if (field.isMap) {
        for (const [key, value] of message[field.name]) {
          parts.push(delimitedField(field.number, MapEntry.encode({ key, value })));
        }
      } else if (field.isRepeated) {
        if (field.wireType === DELIMITED) {
          for (const element of value) parts.push(MessageType.#field(field, element));
        } else if (value.length > 0) {
          parts.push(delimitedField(field.number, concatenate(value.map(field.write))));
        }
      } else {
        // Empty bytes may be another object than the initial value.
        const isInitial = value === field.initial || (!field.message && value.length === 0);
        if (!isInitial) parts.push(MessageType.#field(field, value));
      }
    }
    return concatenate([EMPTY, ...parts]);
  }

  static #field({ number, wireType, message, write }, value) {
    const content = message ? message.encode(value) : write(value);
    if (wireType === DELIMITED) return delimitedField(number, content);
    return concatenate([varint(number * 8 + wireType), content]);
  }
}

const MapEntry = new MessageType({ key: [1, "string"], value: [2, "string"] });

// 2. Frames ---------------------------------------------------------------------------------------------------------

/** The numbers of a frame's kinds. 8 to 31 have a place in the ordinary lane, 32 to 47 one in the urgent lane. */
export const Kind = Object.freeze({
  hello: 1, welcome: 2, goodbye: 3, ping: 4, pong: 5, acknowledgement: 6, credit: 7,
  push: 8, request: 9, requestPart: 10, requestEnd: 11, responsePart: 12, response: 13, method: 14, blank: 15,
  urgentResponse: 32, cancel: 33, unplacedPush: 48, unplacedRequestPart: 49, unplacedResponsePart: 50,
});

const isOrdinary = (kind) => kind >= 8 && kind <= 31;
const isUrgent = (kind) => kind >= 32 && kind <= 47;

export const GoodbyeCode = Object.freeze({
  closed: 1, draining: 2, replaced: 3, refused: 4, version: 5, violation: 6, full: 7,
});

const Progress = new MessageType({ processed: [1, "count"], received: [2, "count"], urgent: [3, "count"] });
const Terms = new MessageType({
  windowFrames: [1, "uint32"], windowBytes: [2, "count"], credit: [3, "count"], maximumRequests: [4, "uint32"],
  maximumFrame: [5, "uint32"],
});
const Status = { status: [2, "uint32"], message: [3, "string"] };

/** The contents of each kind of frame that this peer writes or reads. */
export const Content = Object.freeze({
  hello: new MessageType({
    minimumVersion: [1, "uint32"], maximumVersion: [2, "uint32"], sessionID: [3, "bytes"], token: [4, "bytes"],
    attempt: [5, "count"], progress: [6, Progress], terms: [7, Terms], name: [8, "string"], metadata: [9, "map"],
  }),
  welcome: new MessageType({
    version: [1, "uint32"], sessionID: [2, "bytes"], token: [3, "bytes"], resumed: [4, "bool"],
    keptMilliseconds: [5, "count"], progress: [6, Progress], terms: [7, Terms], metadata: [9, "map"],
  }),
  goodbye: new MessageType({ code: [1, "enum"], message: [2, "string"], pauseMilliseconds: [3, "count"] }),
  ping: new MessageType({ number: [1, "uint64"] }),
  acknowledgement: new MessageType({ ordinary: [1, "count"], urgent: [2, "count"], ranges: [3, "count", "repeated"] }),
  credit: new MessageType({
    method: [1, "uint32"], request: [2, "uint32"], response: [3, "uint32"], bytes: [4, "count"],
  }),
  push: new MessageType({ method: [1, "uint32"], metadata: [2, "map"], payload: [3, "bytes"] }),
  // Without its timeout, which comes first: see `requestContent`.
  request: new MessageType({
    serial: [2, "uint32"], method: [3, "uint32"], partsFollow: [4, "bool"], metadata: [5, "map"], payload: [6, "bytes"],
  }),
  // A server's request: only the fields that a refusal needs.
  incomingRequest: new MessageType({
    serial: [2, "uint32"], method: [3, "uint32"], partsFollow: [4, "bool"], payload: [6, "bytes"],
  }),
  response: new MessageType({ serial: [1, "uint32"], ...Status, metadata: [5, "map"], payload: [6, "bytes"] }),
  method: new MessageType({ number: [1, "uint32"], name: [2, "string"] }),
  serial: new MessageType({ serial: [1, "uint32"] }),
});

/** A frame without its length prefix. */
export function encodeFrame(kind, content = EMPTY) {
  return delimitedField(kind, content);
}

/** A frame with its length prefix. */
export function delimited(frame) {
  return concatenate([varint(frame.length), frame]);
}

/** The kind and the content of a frame. A frame without a kind has kind 0. Throws `WireError` and `Violation`. */
export function decodeFrame(frame) {
  const reader = new Reader(frame);
  let kind = 0, content = EMPTY;
  while (!reader.isAtEnd) {
    const [number, wireType] = reader.tag();
    if (wireType !== DELIMITED) {
      reader.skip(wireType);
      continue;
    }
    if (kind !== 0) throw new Violation("a frame has more than one kind");
    [kind, content] = [number, reader.bytes()];
  }
  return { kind, content };
}

/** The cost of a frame in windows and credits. */
const cost = (frame) => frame.length + 64;

/** The other side broke the rules. The message says how, and is sent to it. */
export class Violation extends Error {
  name = "Violation";
}

/** Refuses more entries of metadata or details than a frame may have, because an entry takes more memory than its
 *  bytes. */
function checkEntries(content, field, maximumByteCount, otherByteCount = 0) {
  const reader = new Reader(content);
  let count = 0, size = otherByteCount;
  while (!reader.isAtEnd) {
    const [number, wireType] = reader.tag();
    if (number !== field || wireType !== DELIMITED) {
      reader.skip(wireType);
      continue;
    }
    const { length } = reader.bytes();
    count += 1;
    size += 1 + varint(length).length + length;
    if (count > 128 || size > maximumByteCount) throw new Violation("a frame has too many entries");
  }
}

/** Finds the frames in a stream that arrives in pieces. It holds only the received bytes of one frame, whatever length
 *  that declares. */
export class FrameDecoder {
  #maximumLength;
  #length = 0;
  #prefixSize = 0;
  /** The parts of the frame so far; null while its prefix is read. */
  #parts = null;
  #missing = 0;

  constructor(maximumLength) {
    this.#maximumLength = maximumLength;
  }

  /** The frames that this piece completes. They may be parts of the piece. Throws `WireError`. */
  *frames(piece) {
    let position = 0;
    while (position < piece.length) {
      if (this.#parts === null) {
        position = this.#readPrefix(piece, position);
        if (this.#parts === null) return;
      }
      const part = piece.subarray(position, position + this.#missing);
      position += part.length;
      this.#missing -= part.length;
      this.#append(part);
      if (this.#missing > 0) return;
      const frame = this.#parts.length === 0 ? EMPTY : concatenate(this.#parts);
      [this.#parts, this.#length, this.#prefixSize] = [null, 0, 0];
      yield frame;
    }
  }

  /** Reads the length, or the available part of it. Returns the position after it. */
  #readPrefix(piece, position) {
    while (position < piece.length) {
      const byte = piece[position++];
      // The fifth byte has the last four of 32 bits.
      if (this.#prefixSize === 4 && byte > 0x0f) throw new WireError("the length of a frame is malformed");
      this.#length += (byte & 0x7f) * 128 ** this.#prefixSize;
      this.#prefixSize += 1;
      if (byte < 0x80) {
        if (this.#length > this.#maximumLength) throw new WireError("a frame is too long");
        [this.#parts, this.#missing] = [[], this.#length];
        break;
      }
    }
    return position;
  }

  /** Joins small parts, because each separate one takes more memory than its bytes. */
  #append(part) {
    if (part.length === 0) return;
    const last = this.#parts.at(-1);
    if (last && last.length < 4096) this.#parts[this.#parts.length - 1] = concatenate([last, part]);
    else this.#parts.push(part);
  }
}

// 3. Lanes ----------------------------------------------------------------------------------------------------------

/**
 * The frames that were sent in a lane and are not acknowledged, by place. Only sent frames have places: waiting
 * messages are elsewhere, so that a message that was never sent is never in doubt.
 */
export class OutboundLane {
  /** In the order of their places. */
  entries = [];
  /** Their cost. */
  cost = 0;
  /** The place of the last sent frame. */
  last = 0;
  /** The progress that the other side has reported: the places up to which everything was processed, and received. */
  #processed = 0;
  #received = 0;

  /** Whether one more frame fits into the other side's window. */
  fits(frame, { windowFrames, windowBytes }) {
    return this.entries.length < windowFrames && this.cost + cost(frame) <= windowBytes;
  }

  /** Gives a frame its place. `details` are kept with it. */
  add(frame, details = {}) {
    this.last += 1;
    this.entries.push({ place: this.last, frame, cost: cost(frame), ...details });
    this.cost += cost(frame);
  }

  /** Places were processed: those up to `upTo`, and those that pairs of (skip, run) name after it. Returns their
   *  entries. */
  acknowledge(upTo, ranges = []) {
    if (ranges.length % 2 === 1 || ranges.length > 2048) throw new Violation("an acknowledgement has wrong ranges");
    if (upTo > this.last) throw new Violation("a place was acknowledged that was not sent");
    const acknowledged = this.#remove(1, upTo);
    this.#processed = Math.max(this.#processed, upTo);
    this.#received = Math.max(this.#received, upTo);
    let end = upTo;
    for (let index = 0; index < ranges.length; index += 2) {
      const [skip, run] = [ranges[index], ranges[index + 1]];
      if (skip === 0 || run === 0) throw new Violation("an acknowledgement has wrong ranges");
      const start = end + skip + 1;
      end += skip + run;
      if (end > this.last) throw new Violation("a place was acknowledged that was not sent");
      acknowledged.push(...this.#remove(start, end));
      this.#received = Math.max(this.#received, end);
    }
    return acknowledged;
  }

  /** The other side has reconnected. Returns the processed entries, and those that have to be sent again, in order. */
  resume(processed, received) {
    if (processed < this.#processed || received < this.#received || received < processed || received > this.last) {
      throw new Violation("the progress does not fit the frames that were sent");
    }
    const acknowledged = this.acknowledge(processed);
    this.#received = received;
    return { acknowledged, missing: this.entries.slice(this.#index(received + 1)) };
  }

  /** Removes and returns the entries with places from `first` to `last`. */
  #remove(first, last) {
    const start = this.#index(first);
    const removed = this.entries.splice(start, this.#index(last + 1) - start);
    for (const entry of removed) this.cost -= entry.cost;
    return removed;
  }

  /** The index of the first entry whose place is not below `place`. */
  #index(place) {
    let [low, high] = [0, this.entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.entries[middle].place < place) low = middle + 1; else high = middle;
    }
    return low;
  }
}

/** The frames received in the ordinary lane, and those that were processed. */
export class InboundLane {
  /** The place of the last received frame. It outlives connections, so nothing is taken twice. */
  received = 0;
  /** Everything up to here was processed. */
  processed = 0;
  /** The places processed above that: [first, last], in order and not adjacent. */
  #ranges = [];
  /** The received frames that are not processed. */
  #openFrames = 0;
  #openCost = 0;

  /** A frame has arrived. Returns its place. */
  receive(frameCost, { windowFrames, windowBytes }) {
    this.#openFrames += 1;
    this.#openCost += frameCost;
    if (this.#openFrames > windowFrames || this.#openCost > windowBytes) throw new Violation("the window is exceeded");
    this.received += 1;
    return this.received;
  }

  process(place, frameCost) {
    this.#openFrames -= 1;
    this.#openCost -= frameCost;
    // Most often it is the next one.
    let index = this.#ranges.findIndex(([, last]) => last >= place - 1);
    if (index < 0) index = this.#ranges.length;
    const range = this.#ranges[index];
    if (range && range[1] === place - 1) {
      range[1] = place;
      const next = this.#ranges[index + 1];
      if (next && next[0] === place + 1) {
        range[1] = next[1];
        this.#ranges.splice(index + 1, 1);
      }
    } else if (range && range[0] === place + 1) {
      range[0] = place;
    } else {
      this.#ranges.splice(index, 0, [place, place]);
    }
    if (this.#ranges[0][0] === this.processed + 1) this.processed = this.#ranges.shift()[1];
  }

  /**
   * The ranges as pairs of (skip, run). Each acknowledgement has all of them, which is simple, and repeats lost ones.
   * 200 pairs fit into every frame; further ones wait until lower ones are complete.
   */
  get ranges() {
    let end = this.processed;
    return this.#ranges.slice(0, 200).flatMap(([first, last]) => {
      const pair = [first - end - 1, last - first + 1];
      end = last;
      return pair;
    });
  }
}

// 4. The machine ----------------------------------------------------------------------------------------------------

/** This peer's limits: Lifeline's own defaults. The longest frame is also the limit of the bytes kept of one. */
const MAXIMUM_FRAME = 4 << 20;
const TERMS = Object.freeze({
  windowFrames: 65_536, windowBytes: 8 << 20, credit: 256 << 10, maximumRequests: 1_024, maximumFrame: MAXIMUM_FRAME,
});
/** The version of the protocol that this file speaks. */
const VERSION = 1;
/** The number of methods that each side may name. */
const MAXIMUM_METHODS = 1_024;
/** The limit of urgent frames that wait or are unacknowledged; a server that sends further requests breaks the rules.
 *  */
const MAXIMUM_URGENT = 16_384;
/** The limit of unplaced pushes that wait for their handlers; further ones are dropped. */
const MAXIMUM_UNPLACED = 64;
/** The limits of this side's messages that wait or are unacknowledged, and of their cost. Further ones are refused. */
const MAXIMUM_KEPT_COUNT = 10_000;
const MAXIMUM_KEPT_COST = 8 << 20;
/**
 * An acknowledgement is due after this number of processed messages, this cost, or this many milliseconds after the
 * first one. (The document names a quarter of the window, too, which is more here.)
 */
const ACKNOWLEDGED_COUNT = 16;
const ACKNOWLEDGED_COST = 32 << 10;
const ACKNOWLEDGED_AFTER = 20;
/** The longest pause that a goodbye may ask for. A wrong one must not keep a client away for days. */
const MAXIMUM_PAUSE = 300_000;
const UNIMPLEMENTED = 12;
/** The longest timeout on the wire: 49 days. */
const MAXIMUM_TIMEOUT = 0xffff_ffff;

/** In milliseconds. These are the defaults of Lifeline's own client, except for the first delay: a page tries sooner.
 *  */
export const defaultTimes = Object.freeze({
  /** From the beginning of an attempt to the welcome. */
  openTimeout: 10_000,
  firstDelay: 250, maximumDelay: 30_000, jitter: 0.2,
  /** After this time, a connection counts as stable, and the delays begin with the first one again. */
  stableAfter: 10_000,
  /** After this much silence the server is pinged, up to three times. */
  heartbeat: 30_000, heartbeatTimeout: 10_000, heartbeatMisses: 3,
});

/** The error of a call or a push. */
export class SessionError extends Error {
  name = "SessionError";

  /**
   * `code` is one of
   * - "status": the server answered with the code `status` of google.rpc.Code;
   * - "timedOut", "cancelled";
   * - "sessionLost": the session has ended, and it is unknown whether the server has handled the message;
   * - "closed": this side has closed the session, or the server has for good;
   * - "full": too much is kept for the server. "tooLarge": the server does not accept frames of this length.
   * - "malformed": the reply cannot be read, or the server answers a unary call with a stream.
   */
  constructor(code, message, status = 0) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** A frame that holds the place of one that is not sent any more. */
const BLANK = encodeFrame(Kind.blank);

/** The content of a request. Its timeout comes first, padded to five bytes, so that it can be changed in place. */
function requestContent(request) {
  return concatenate([Uint8Array.of(0x08, 0x80, 0x80, 0x80, 0x80, 0x00), Content.request.encode(request)]);
}

function setTimeoutOfRequest(frame, milliseconds) {
  // After the tag and the length of the frame's one field, and the tag of the timeout.
  let position = 1;
  while (frame[position] >= 0x80) position += 1;
  position += 2;
  let rest = milliseconds;
  for (let index = 0; index < 5; index += 1, rest = Math.floor(rest / 128)) {
    frame[position + index] = rest % 128 | (index < 4 ? 0x80 : 0);
  }
}

/**
 * The client's end of a session: it makes every decision, and nothing else. It has no socket, no clock and no timers.
 * Its methods take events, with the time in milliseconds. `takeEffects()` returns the actions, in order:
 *
 * - `{ do: "connect", url }`: open a connection to the server with this index; then call `connected` or `disconnected`;
 * - `{ do: "send", bytes }`, `{ do: "disconnect" }`: on that connection, which may cause no events after that;
 * - `{ do: "deliver", push }`: pass it to the handler of `push.method`, and call `consumed(push)` afterwards;
 * - `{ do: "settle", message, error | payload, metadata }`: the outcome of a message that was passed to `send`;
 * - `{ do: "tell", event, … }`: report a "state", or a session that was "opened" or "lost", to the user.
 *
 * When `nextDeadline` has come, call `passed`.
 */
export class SessionMachine {
  /** "new", "connecting", "greeting" (the hello is sent), "open", "waiting" (for the next attempt), or "closed". */
  state = "new";

  #times;
  #random;
  #name;
  #urlCount;
  #handledMethods;
  #effects = [];
  /** The frames that are sent at the end of this event. */
  #out = [];

  // The connection.
  #url = 0;
  #decoder = null;
  #failures = 0;
  #openedAt = Infinity;
  #openBy = Infinity;
  #retryAt = Infinity;
  #pingAt = Infinity;
  #misses = 0;
  #pings = 0n;
  /** The time before which a client that was sent away does not reconnect; null otherwise. */
  #drainedUntil = null;

  // The session. The id is empty while there is none.
  #id = EMPTY;
  #token = EMPTY;
  #attempt = 0;
  /** Counts sessions, to distinguish consumed pushes of an earlier one. */
  #session = 0;
  #terms = null;
  #ordinary = new OutboundLane();
  #urgent = new OutboundLane();
  /** Urgent frames that wait for the window or for a connection. */
  #urgentWaiting = [];
  /** The methods that this side has named: name → { number, used, granted }. */
  #methods = new Map();
  /** Requests that were sent and have not ended: serial → message. */
  #requests = new Map();
  #lastSerial = 0;
  #inbound = new InboundLane();
  #inboundUrgent = 0;
  /** The methods that the server has named, the first one at 1: { name, received, consumed, told }, in cost. */
  #inboundMethods = [null];
  #inboundNames = new Set();
  #unplacedCount = 0;
  #unacknowledged = { count: 0, cost: 0 };
  #acknowledgeBy = Infinity;

  // The unsent messages of this side, in order; they outlive sessions.
  #waiting = [];
  #waitingCost = 0;
  /** No later than the earliest timeout of a request. */
  #timeoutBound = Infinity;

  /**
   * There are `urlCount` servers to connect to. Pushes of `handledMethods`, a Set of names, are delivered, all others
   * dropped. `random` returns numbers from 0 to 1.
   */
  constructor({ urlCount = 1, handledMethods = new Set(), name = "", times = {}, random = Math.random }) {
    this.#urlCount = urlCount;
    this.#handledMethods = handledMethods;
    this.#name = name;
    this.#times = { ...defaultTimes, ...times };
    this.#random = random;
  }

  takeEffects() {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  /** The time at which to call `passed`; Infinity: never. */
  get nextDeadline() {
    return Math.min(this.#openBy, this.#retryAt, this.#pingAt, this.#acknowledgeBy, this.#timeoutBound);
  }

  // Calls of the user

  start(now) {
    if (this.state === "new") this.#connect(now);
  }

  /** Tries at once, instead of waiting for the next attempt. */
  reconnect(now) {
    if (this.state !== "waiting") return;
    this.#failures = 0;
    this.#connect(now);
  }

  /**
   * Takes a message: `{ method, payload, metadata, deadline, isRequest }`, with a Map for metadata and Infinity for no
   * deadline. It is settled later: a request with its reply, a push when the server has processed it.
   */
  send(message, now) {
    const size = message.payload.length + utf8.encode(message.method).length + 64
      + [...message.metadata].reduce((sum, [key, value]) => sum + utf8.encode(key + value).length + 12, 0);
    const count = this.#waiting.length + this.#ordinary.entries.length + this.#requests.size;
    if (this.state === "closed") return this.#settle(message, { error: new SessionError("closed", "It is closed.") });
    if (count >= MAXIMUM_KEPT_COUNT || this.#waitingCost + this.#ordinary.cost + size > MAXIMUM_KEPT_COST) {
      return this.#settle(message, { error: new SessionError("full", "Too much is kept for the server.") });
    }
    message.size = size;
    this.#waiting.push(message);
    this.#waitingCost += size;
    this.#timeoutBound = Math.min(this.#timeoutBound, message.deadline);
    this.#endEvent(now);
  }

  /** Cancels a request. */
  cancel(message, now) {
    this.#giveUp(message, new SessionError("cancelled", "The call was cancelled."));
    this.#endEvent(now);
  }

  /** A delivered push is consumed. */
  consumed(push, now) {
    if (push.isUnplaced) {
      this.#unplacedCount -= 1;
      return;
    }
    if (push.session !== this.#session) return;
    this.#consume(push, now);
    this.#endEvent(now);
  }

  /** Ends the session, here and at the server. */
  close(now) {
    if (this.state === "closed") return;
    if (this.state === "open") {
      this.#acknowledge();
      this.#out.push(encodeFrame(Kind.goodbye, Content.goodbye.encode({ code: GoodbyeCode.closed })));
      this.#flush();
    }
    this.#end("closed", "This side has closed the session.");
  }

  // Events

  /** The connection is open. `metadata`, a Map, is for the server's decision to admit the client. */
  connected(now, metadata = new Map()) {
    if (this.state !== "connecting") return;
    this.#attempt += 1;
    const hasSession = this.#id.length > 0;
    const hello = Content.hello.encode({
      minimumVersion: VERSION, maximumVersion: VERSION, sessionID: this.#id, token: this.#token, attempt: this.#attempt,
      progress: hasSession ? {
        processed: this.#inbound.processed, received: this.#inbound.received, urgent: this.#inboundUrgent,
      } : null,
      terms: TERMS, name: this.#name, metadata,
    });
    this.#enter("greeting");
    this.#out.push(encodeFrame(Kind.hello, hello));
    // The progress has stated it, except for ranges.
    this.#unacknowledged = { count: 0, cost: 0 };
    this.#endEvent(now);
  }

  /** Bytes have arrived. Null stands for anything else, such as a text over WebSocket. */
  received(bytes, now) {
    if (this.state !== "greeting" && this.state !== "open") return;
    this.#heard(now);
    try {
      if (bytes === null) throw new Violation("a text came instead of bytes");
      const decoder = this.#decoder;
      for (const frame of decoder.frames(bytes)) {
        if (this.state === "greeting") this.#takeGreeting(frame, now);
        else this.#take(frame, now);
        // The connection may have ended with this frame.
        if (this.#decoder !== decoder) break;
      }
    } catch (error) {
      if (!(error instanceof WireError || error instanceof Violation)) throw error;
      // A frame in place of a welcome does not affect the session.
      if (this.state === "greeting") this.#loseConnection(now);
      else this.#violated(error.message, now);
    }
    this.#endEvent(now);
  }

  /** The connection is lost, or could not be made. */
  disconnected(now) {
    if (["connecting", "greeting", "open"].includes(this.state)) this.#loseConnection(now);
  }

  /** A deadline has come. */
  passed(now) {
    if (now >= this.#retryAt) this.#connect(now);
    if (now >= this.#openBy) this.#loseConnection(now);
    if (now >= this.#timeoutBound) this.#timeOut(now);
    if (now >= this.#pingAt) this.#ping(now);
    this.#endEvent(now);
  }

  // The connection

  #connect(now) {
    [this.#retryAt, this.#openBy] = [Infinity, now + this.#times.openTimeout];
    this.#decoder = new FrameDecoder(MAXIMUM_FRAME);
    this.#enter("connecting", { url: this.#url });
    this.#effects.push({ do: "connect", url: this.#url });
  }

  /**
   * Tries again later. After an open connection, it tries the same server first, which has the session, and otherwise
   * the next one.
   */
  #loseConnection(now, pausedUntil = this.#drainedUntil) {
    const wasOpen = this.state === "open";
    if (!wasOpen || pausedUntil !== null) this.#url = (this.#url + 1) % this.#urlCount;
    if (wasOpen && now - this.#openedAt >= this.#times.stableAfter) this.#failures = 0;
    const { firstDelay, maximumDelay, jitter } = this.#times;
    const delay = Math.min(firstDelay * 2 ** this.#failures, maximumDelay) * (1 + jitter * (2 * this.#random() - 1));
    this.#failures += 1;
    this.#leaveConnection();
    this.#retryAt = Math.max(now + delay, pausedUntil ?? 0);
    this.#enter("waiting", { delay: this.#retryAt - now });
  }

  #leaveConnection() {
    [this.#openBy, this.#pingAt, this.#acknowledgeBy] = [Infinity, Infinity, Infinity];
    [this.#decoder, this.#drainedUntil, this.#out] = [null, null, []];
    this.#effects.push({ do: "disconnect" });
  }

  #enter(state, details = {}) {
    this.state = state;
    this.#effects.push({ do: "tell", event: "state", state, ...details });
  }

  /** There will be no other connection. */
  #end(code, message) {
    if (this.#decoder) this.#leaveConnection();
    this.#retryAt = this.#timeoutBound = Infinity;
    this.#forgetSession("closed", message);
    for (const waiting of this.#waiting) this.#settle(waiting, { error: new SessionError("closed", message) });
    [this.#waiting, this.#waitingCost] = [[], 0];
    this.#enter("closed", { code, message });
  }

  /** Any bytes are a sign of life. */
  #heard(now) {
    if (this.state === "open") this.#pingAt = now + this.#times.heartbeat;
    this.#misses = 0;
  }

  #ping(now) {
    if (this.#misses === this.#times.heartbeatMisses) return this.#loseConnection(now);
    this.#misses += 1;
    this.#pings += 1n;
    this.#pingAt = now + this.#times.heartbeatTimeout;
    this.#out.push(encodeFrame(Kind.ping, Content.ping.encode({ number: this.#pings })));
  }

  // Opening

  /** Another frame in place of a welcome ends only this connection. A welcome that breaks a rule ends the session. */
  #takeGreeting(frame, now) {
    const { kind, content } = decodeFrame(frame);
    if (kind === Kind.ping) return this.#pong(content);
    if (kind === Kind.goodbye) return this.#takeGoodbye(Content.goodbye.decode(content), now);
    if (kind === Kind.welcome) {
      try {
        return this.#takeWelcome(content, now);
      } catch (error) {
        if (!(error instanceof Violation)) throw error;
        return this.#violated(error.message, now);
      }
    }
    if (kind === Kind.hello || isOrdinary(kind) || isUrgent(kind) || (kind >= 48 && kind <= 50)) {
      this.#loseConnection(now);
    }
  }

  #takeWelcome(content, now) {
    checkEntries(content, 9, 64 << 10);
    const welcome = Content.welcome.decode(content);
    const { sessionID, token, terms, progress } = welcome;
    if (welcome.version !== VERSION) throw new Violation("the welcome has a version that was not offered");
    if (sessionID.length !== 16 || token.length !== 16) throw new Violation("the welcome has no session");
    if (!terms || terms.windowFrames < 1 || terms.windowBytes < 4096 || terms.credit < 64 << 10
      || (terms.maximumFrame !== 0 && terms.maximumFrame < 4096)) throw new Violation("the welcome has wrong terms");
    const limits = { ...terms, maximumFrame: terms.maximumFrame || MAXIMUM_FRAME };
    [this.#openBy, this.#openedAt] = [Infinity, now];
    if (!welcome.resumed) {
      this.#forgetSession("sessionLost", "The server does not know the session.");
      [this.#id, this.#token, this.#terms] = [sessionID.slice(), token.slice(), limits];
      this.#enter("open");
    } else {
      if (this.#id.length === 0) throw new Violation("a session was resumed that there was not");
      this.#resume(limits, progress ?? { processed: 0, received: 0, urgent: 0 }, now);
    }
    this.#heard(now);
    const { resumed, metadata } = welcome;
    this.#effects.push({ do: "tell", event: "opened", resumed, metadata, url: this.#url });
  }

  #resume(limits, { processed, received, urgent }, now) {
    const ordinary = this.#ordinary.resume(processed, received);
    const urgents = this.#urgent.resume(urgent, urgent);
    // Windows and frames may grow; the credit of the first opening stays.
    for (const name of ["windowFrames", "windowBytes", "maximumFrame"]) {
      this.#terms[name] = Math.max(this.#terms[name], limits[name]);
    }
    this.#terms.maximumRequests = limits.maximumRequests;
    this.#enter("open");
    this.#settleProcessed(ordinary.acknowledged);
    for (const entry of ordinary.missing) {
      const { message } = entry;
      if (message?.isRequest) {
        if (this.#requests.get(message.serial) !== message) entry.frame = BLANK;
        else setTimeoutOfRequest(entry.frame, timeLeft(message, now));
      }
      this.#out.push(entry.frame);
    }
    for (const entry of urgents.missing) this.#out.push(entry.frame);
    // Pushes that were consumed since the hello are acknowledged with their method's credit, below.
    if (this.#inbound.ranges.length > 0) this.#acknowledge();
    for (const [number, method] of this.#inboundMethods.entries()) {
      if (method && method.consumed > 0) this.#grant(number, method);
    }
  }

  /** The session has ended. Messages that were sent and not acknowledged or answered are in doubt. */
  #forgetSession(code, reason) {
    if (this.#id.length === 0) return;
    const inDoubt = this.#ordinary.entries.map(({ message }) => message).filter((sent) => sent?.isRequest === false);
    inDoubt.push(...this.#requests.values());
    const words = "The session was lost. It is not known whether the server has handled this.";
    for (const message of inDoubt) this.#settle(message, { error: new SessionError(code, words) });
    this.#session += 1;
    this.#id = this.#token = EMPTY;
    [this.#ordinary, this.#urgent, this.#urgentWaiting] = [new OutboundLane(), new OutboundLane(), []];
    [this.#methods, this.#requests] = [new Map(), new Map()];
    [this.#inbound, this.#inboundUrgent] = [new InboundLane(), 0];
    [this.#inboundMethods, this.#inboundNames] = [[null], new Set()];
    this.#unacknowledged = { count: 0, cost: 0 };
    this.#acknowledgeBy = Infinity;
    this.#effects.push({ do: "tell", event: "lost", inDoubt, reason });
  }

  #violated(words, now) {
    const goodbye = { code: GoodbyeCode.violation, message: words };
    this.#out = [encodeFrame(Kind.goodbye, Content.goodbye.encode(goodbye))];
    this.#flush();
    this.#forgetSession("sessionLost", `The server broke the rules: ${words}.`);
    this.#loseConnection(now);
  }

  #takeGoodbye({ code, message: words, pauseMilliseconds }, now) {
    const pausedUntil = now + Math.min(pauseMilliseconds, MAXIMUM_PAUSE);
    switch (code) {
      case GoodbyeCode.closed:
        return this.#end("closed", "The server has ended the session.");
      case GoodbyeCode.replaced:
        return this.#end("replaced", "Another connection has the session.");
      case GoodbyeCode.refused:
        return this.#end("refused", "The server does not let this client in.");
      case GoodbyeCode.version:
        return this.#end("version", "The server speaks another version of the protocol.");
      case GoodbyeCode.violation:
        this.#forgetSession("sessionLost", `The server says that this side broke the rules: ${words.slice(0, 1_000)}`);
        return this.#loseConnection(now);
      case GoodbyeCode.full:
        return this.#loseConnection(now, pausedUntil);
      default:
        // Draining, or a code of a later version. Open requests are finished over this connection.
        if (this.state === "greeting") this.#loseConnection(now, pausedUntil);
        else this.#drainedUntil = pausedUntil;
    }
  }

  // Received frames

  #take(frame, now) {
    const { kind, content } = decodeFrame(frame);
    if (isOrdinary(kind)) return this.#takeOrdinary(kind, content, cost(frame), now);
    if (isUrgent(kind)) return this.#takeUrgent(kind, content, cost(frame), now);
    switch (kind) {
      case Kind.hello: case Kind.welcome: throw new Violation("the session is open already");
      case Kind.goodbye: return this.#takeGoodbye(Content.goodbye.decode(content), now);
      case Kind.ping: return this.#pong(content);
      case Kind.acknowledgement: return this.#takeAcknowledgement(Content.acknowledgement.decode(content));
      case Kind.credit: return this.#takeCredit(Content.credit.decode(content));
      case Kind.unplacedPush: return this.#takePush(content, null, now);
      // Pongs, parts of streams, and kinds of later versions.
      default:
    }
  }

  #pong(content) {
    this.#out.push(encodeFrame(Kind.pong, Content.ping.encode(Content.ping.decode(content))));
  }

  #takeOrdinary(kind, content, frameCost, now) {
    const place = this.#inbound.receive(frameCost, TERMS);
    if (kind === Kind.push && this.#takePush(content, { place, cost: frameCost }, now)) return;
    switch (kind) {
      case Kind.method: this.#takeMethod(Content.method.decode(content)); break;
      case Kind.request: this.#takeRequest(Content.incomingRequest.decode(content)); break;
      case Kind.response: this.#takeResponse(content); break;
      case Kind.responsePart: this.#takeResponsePart(Content.serial.decode(content)); break;
      // Parts and ends of requests, which were all refused; blanks, and kinds of later versions.
      default:
    }
    this.#inbound.process(place, frameCost);
    this.#countProcessed(frameCost, now);
  }

  #takeUrgent(kind, content, frameCost, now) {
    this.#inboundUrgent += 1;
    this.#countProcessed(frameCost, now);
    if (kind === Kind.urgentResponse) this.#takeResponse(content);
  }

  #takeMethod({ number, name }) {
    const length = utf8.encode(name).length;
    if (number !== this.#inboundMethods.length || number > MAXIMUM_METHODS || length < 1 || length > 256
      || this.#inboundNames.has(name)) throw new Violation("a method was named wrongly");
    this.#inboundNames.add(name);
    this.#inboundMethods.push({ name, received: 0, consumed: 0, told: TERMS.credit });
  }

  #inboundMethod(number) {
    return this.#inboundMethods[number] ?? fail(new Violation("a method was not named"));
  }

  /** Returns whether the push waits for its handler. `placed` is its place and cost; null if it has none. */
  #takePush(content, placed, now) {
    checkEntries(content, 2, 64 << 10);
    const { method: number, metadata, payload } = Content.push.decode(content);
    const method = this.#inboundMethod(number);
    const isHandled = this.#handledMethods.has(method.name);
    const push = { method: method.name, metadata, payload, number, session: this.#session };
    if (!placed) {
      if (isHandled && this.#unplacedCount < MAXIMUM_UNPLACED) {
        this.#unplacedCount += 1;
        this.#effects.push({ do: "deliver", push: { ...push, isUnplaced: true } });
      }
      return false;
    }
    if (method.received >= method.told) throw new Violation("the credit of a method is exceeded");
    method.received += placed.cost;
    Object.assign(push, placed);
    if (isHandled) this.#effects.push({ do: "deliver", push });
    else this.#consume(push, now);
    return true;
  }

  #consume({ place, cost: frameCost, number }, now) {
    this.#inbound.process(place, frameCost);
    this.#countProcessed(frameCost, now);
    const method = this.#inboundMethods[number];
    method.consumed += frameCost;
    // Without a connection: when there is one.
    if (this.state === "open" && TERMS.credit + method.consumed - method.told >= TERMS.credit / 2) {
      this.#grant(number, method);
    }
  }

  #grant(number, method) {
    method.told = TERMS.credit + method.consumed;
    this.#out.push(encodeFrame(Kind.credit, Content.credit.encode({ method: number, bytes: method.told })));
  }

  #takeRequest({ serial, method, partsFollow, payload }) {
    if (serial === 0 || (partsFollow && payload.length > 0)) throw new Violation("a request is malformed");
    this.#inboundMethod(method);
    if (this.#urgentWaiting.length + this.#urgent.entries.length >= MAXIMUM_URGENT) {
      throw new Violation("too many responses are not acknowledged");
    }
    const refusal = { serial, status: UNIMPLEMENTED, message: "This client answers no requests." };
    this.#sendUrgent(encodeFrame(Kind.urgentResponse, Content.response.encode(refusal)));
  }

  #takeResponse(content) {
    checkEntries(content, 4, Infinity);
    checkEntries(content, 5, 64 << 10);
    const { serial, status, message: words, payload, metadata } = Content.response.decode(content);
    const message = this.#requests.get(serial);
    // An answer and a cancel may cross.
    if (!message) return;
    this.#requests.delete(serial);
    if (status === 0) this.#settle(message, { payload, metadata });
    else this.#settle(message, { error: new SessionError("status", words.slice(0, 1_000), status) });
  }

  #takeResponsePart({ serial }) {
    const message = this.#requests.get(serial);
    if (message) this.#giveUp(message, new SessionError("malformed", "The server answers with a stream."));
  }

  #takeAcknowledgement({ ordinary, urgent, ranges }) {
    this.#settleProcessed(this.#ordinary.acknowledge(ordinary, ranges));
    this.#urgent.acknowledge(urgent);
  }

  #settleProcessed(entries) {
    for (const { message } of entries) if (message?.isRequest === false) this.#settle(message, {});
  }

  #takeCredit({ method: number, request, response, bytes }) {
    if ([number, request, response].filter((value) => value !== 0).length !== 1) {
      throw new Violation("a credit is for nothing, or for several");
    }
    for (const method of number === 0 ? [] : this.#methods.values()) {
      if (method.number === number) method.granted = Math.max(method.granted, bytes);
    }
  }

  #countProcessed(frameCost, now) {
    this.#unacknowledged.count += 1;
    this.#unacknowledged.cost += frameCost;
    if (this.state === "open" && this.#acknowledgeBy === Infinity) this.#acknowledgeBy = now + ACKNOWLEDGED_AFTER;
  }

  #acknowledge() {
    const { processed, ranges } = this.#inbound;
    const acknowledgement = { ordinary: processed, urgent: this.#inboundUrgent, ranges };
    this.#out.push(encodeFrame(Kind.acknowledgement, Content.acknowledgement.encode(acknowledgement)));
    this.#unacknowledged = { count: 0, cost: 0 };
    this.#acknowledgeBy = Infinity;
  }

  // Sent frames

  /** Ends each event: sends frames that have room, and acknowledgements that are due or need no extra packet. */
  #endEvent(now) {
    if (this.state === "open") {
      this.#sendWaiting(now);
      const { count, cost: processedCost } = this.#unacknowledged;
      const isDue = count >= ACKNOWLEDGED_COUNT || processedCost >= ACKNOWLEDGED_COST || now >= this.#acknowledgeBy;
      if (isDue || (count > 0 && this.#out.length > 0)) this.#acknowledge();
    }
    this.#flush();
    const isDone = this.#requests.size + this.#ordinary.entries.length + this.#urgent.entries.length === 0;
    if (this.state === "open" && this.#drainedUntil !== null && isDone) {
      if (this.#unacknowledged.count > 0) this.#acknowledge();
      this.#flush();
      this.#loseConnection(now);
    }
  }

  #flush() {
    if (this.#out.length === 0) return;
    this.#effects.push({ do: "send", bytes: concatenate(this.#out.map(delimited)) });
    this.#out = [];
  }

  #sendUrgent(frame) {
    this.#urgentWaiting.push(frame);
  }

  #sendWaiting(now) {
    // After the requests that they cancel, which were sent before.
    let count = 0;
    while (count < this.#urgentWaiting.length && this.#urgent.fits(this.#urgentWaiting[count], this.#terms)) {
      this.#urgent.add(this.#urgentWaiting[count]);
      this.#out.push(this.#urgentWaiting[count]);
      count += 1;
    }
    if (count > 0) this.#urgentWaiting.splice(0, count);
    if (this.#drainedUntil !== null) return;
    const kept = [];
    let index = 0;
    for (; index < this.#waiting.length; index += 1) {
      const outcome = this.#begin(this.#waiting[index], now);
      if (outcome === "full") break;
      if (outcome === "waits") kept.push(this.#waiting[index]);
      else this.#waitingCost -= this.#waiting[index].size;
    }
    if (index > kept.length) this.#waiting = kept.concat(this.#waiting.slice(index));
  }

  /**
   * Sends a waiting message. Returns "done", "waits" if it needs credit or the end of another request, which holds up
   * no others, or "full" if the window is full.
   */
  #begin(message, now) {
    const { method: name, metadata, payload, isRequest } = message;
    if (isRequest && this.#requests.size >= Math.max(this.#terms.maximumRequests, 1)) return "waits";
    const method = this.#methods.get(name) ?? this.#nameMethod(name);
    if (typeof method === "string") return method;
    if (method === null) return this.#refuse(message, "The method's name is too long, or there are too many methods.");
    if (!isRequest && method.used >= method.granted) return "waits";
    if (isRequest) message.serial = this.#nextSerial();
    const frame = isRequest
      ? encodeFrame(Kind.request, requestContent({ serial: message.serial, method: method.number, metadata, payload }))
      : encodeFrame(Kind.push, Content.push.encode({ method: method.number, metadata, payload }));
    if (frame.length > this.#terms.maximumFrame || cost(frame) > this.#terms.windowBytes) {
      return this.#refuse(message, "The server takes no frame that is so long.");
    }
    if (!this.#ordinary.fits(frame, this.#terms)) return "full";
    if (isRequest) {
      setTimeoutOfRequest(frame, timeLeft(message, now));
      this.#lastSerial = message.serial;
      this.#requests.set(message.serial, message);
    } else {
      method.used += cost(frame);
    }
    this.#ordinary.add(frame, { message });
    this.#out.push(frame);
    return "done";
  }

  #refuse(message, words) {
    this.#settle(message, { error: new SessionError("tooLarge", words) });
    return "done";
  }

  /** Assigns a number to a method. Returns it, "full" if the window is full, or null for a name that cannot have one.
   *  */
  #nameMethod(name) {
    const length = utf8.encode(name).length;
    if (length < 1 || length > 256 || this.#methods.size === MAXIMUM_METHODS) return null;
    const number = this.#methods.size + 1;
    const frame = encodeFrame(Kind.method, Content.method.encode({ number, name }));
    if (!this.#ordinary.fits(frame, this.#terms)) return "full";
    this.#ordinary.add(frame);
    this.#out.push(frame);
    const method = { number, used: 0, granted: this.#terms.credit };
    this.#methods.set(name, method);
    return method;
  }

  /** Serials of open requests are skipped. */
  #nextSerial() {
    let serial = this.#lastSerial;
    do serial = serial === 0xffff_ffff ? 1 : serial + 1; while (this.#requests.has(serial));
    return serial;
  }

  /** A request ends without its answer. If it was sent, a cancel is sent to the server. */
  #giveUp(message, error) {
    const index = this.#waiting.indexOf(message);
    if (index >= 0) {
      this.#waiting.splice(index, 1);
      this.#waitingCost -= message.size;
    } else if (this.#requests.get(message.serial) === message) {
      this.#requests.delete(message.serial);
      this.#sendUrgent(encodeFrame(Kind.cancel, Content.serial.encode({ serial: message.serial })));
    } else {
      // It has ended before.
      return;
    }
    this.#settle(message, { error });
  }

  #timeOut(now) {
    this.#timeoutBound = Infinity;
    for (const message of [...this.#waiting, ...this.#requests.values()]) {
      if (message.deadline <= now) this.#giveUp(message, new SessionError("timedOut", "There was no answer in time."));
      else this.#timeoutBound = Math.min(this.#timeoutBound, message.deadline);
    }
  }

  #settle(message, outcome) {
    this.#effects.push({ do: "settle", message, ...outcome });
  }
}

/** The timeout of a request for the server; 0: there is no limit. */
function timeLeft({ deadline }, now) {
  return deadline === Infinity ? 0 : Math.min(Math.max(Math.floor(deadline - now), 1), MAXIMUM_TIMEOUT);
}

function fail(error) {
  throw error;
}

// 5. The session ----------------------------------------------------------------------------------------------------

/** The limit of bytes that wait in the browser to be sent. Disconnects from a server that makes us answer and does not
 *  read. */
const MAXIMUM_BUFFERED = 32 << 20;

/** The outside world that a session needs; tests have their own. */
const world = {
  makeSocket: (url) => new WebSocket(url),
  now: () => performance.now(),
  setTimeout: (action, delay) => setTimeout(action, delay),
  clearTimeout: (timer) => clearTimeout(timer),
  random: Math.random,
};

/**
 * A session with one of several servers.
 *
 *     const session = new Session(["wss://a.example.org/chat", "wss://b.example.org/chat"], {
 *       pushes: { "example.chat.v1.Chat/Said": { type: Message, take: (message, metadata) => show(message) } },
 *       onState: ({ state }) => console.log(state),
 *     });
 *     const reply = await session.call("example.chat.v1.Chat/Say", SayRequest, { text: "Hello" }, SayReply);
 *
 * It connects at once, and again whenever the connection is lost, after growing delays: to the same server first, then
 * to the others. Calls and pushes wait meanwhile. If a server does not know the session, a new one begins: sent
 * messages without an answer fail with the code "sessionLost", and unsent ones go to the new session.
 */
export class Session {
  #urls;
  #options;
  #machine;
  #world;
  #inboxes;
  #socket = null;
  #timer = null;
  #timerAt = Infinity;
  #pendingEffects = [];
  #isWorking = false;

  /**
   * It connects at once, so functions among the options are called before this returns. Throws `TypeError` for a
   * malformed URL.
   *
   * Options, all of them optional:
   * - `pushes`: by the name of a method, the type of its messages, and `take(message, metadata)`. Messages of a method
   *   are taken one after the other: if `take` returns a promise, the next one waits for it. The message is
   *   acknowledged to the server after that. Pushes of other methods are dropped.
   * - `name`: the name of the session at the server.
   * - `metadata()`: returns an object by which the server decides whether to admit the client; called for each
   *   connection.
   * - `onState({ state, url, delay, code, message })`: "connecting" to `url`, "open", "waiting" for `delay` ms, or
   *   "closed", which is the last one, and why.
   * - `onOpened({ resumed, metadata, url })`: a connection is open. If it has not `resumed`, the session is a new one.
   *   The server's `metadata` is a Map, as that of pushes is.
   * - `onLost({ reason, inDoubt })`: a session has ended, with the reason in words. `inDoubt` has the messages that the
   *   server may or may not have handled, each as `{ method, payload, isRequest }`; their promises fail, too.
   * - `onProblem(error)`: a push could not be read, or its handler has failed. It counts as processed.
   * - `times`: see `defaultTimes`.
   */
  constructor(urls, options = {}) {
    this.#urls = urls.map((url) => new URL(url).href);
    if (urls.length === 0) throw new RangeError("A session needs a server.");
    this.#options = options;
    this.#world = { ...world, ...options.world };
    this.#inboxes = new Map(Object.entries(options.pushes ?? {}).map(([name, { type, take }]) =>
      [name, { type, take, waiting: [], isBusy: false }]));
    this.#machine = new SessionMachine({
      urlCount: urls.length, handledMethods: new Set(this.#inboxes.keys()), name: options.name, times: options.times,
      random: this.#world.random,
    });
    this.#run((now) => this.#machine.start(now));
  }

  get state() {
    return this.#machine.state;
  }

  /**
   * Calls a method, and resolves with the reply. Options: `timeout` in milliseconds (default: 30 s; Infinity: none),
   * `metadata` as an object, `signal`, an AbortSignal. Fails with a `SessionError`.
   */
  async call(method, requestType, request, replyType, { timeout = 30_000, metadata = {}, signal } = {}) {
    const message = {
      method, payload: requestType.encode(request), metadata: new Map(Object.entries(metadata)), isRequest: true,
      deadline: this.#world.now() + timeout,
    };
    if (signal?.aborted) throw new SessionError("cancelled", "The call was cancelled.");
    const abort = () => this.#run((now) => this.#machine.cancel(message, now));
    signal?.addEventListener("abort", abort);
    try {
      const { payload } = await this.#send(message);
      return replyType.decode(payload);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      throw new SessionError("malformed", `The reply cannot be read: ${error.message}.`);
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Pushes a message, and resolves when the server has processed it. Fails with a `SessionError`: handle it. */
  async push(method, type, message, { metadata = {} } = {}) {
    const payload = type.encode(message);
    const entries = new Map(Object.entries(metadata));
    await this.#send({ method, payload, metadata: entries, isRequest: false, deadline: Infinity });
  }

  /** Tries to connect at once, instead of waiting for the next attempt, for example when the browser is online again.
   *  */
  reconnect() {
    this.#run((now) => this.#machine.reconnect(now));
  }

  /** Ends the session. Messages that are not processed by then fail with the code "closed". */
  close() {
    this.#run((now) => this.#machine.close(now));
  }

  #send(message) {
    return new Promise((resolve, reject) => {
      Object.assign(message, { resolve, reject });
      this.#run((now) => this.#machine.send(message, now));
    });
  }

  /** Passes an event to the machine, and runs its effects. Events that these cause are handled afterwards. */
  #run(event) {
    event(this.#world.now());
    this.#pendingEffects.push(...this.#machine.takeEffects());
    if (this.#isWorking) return;
    this.#isWorking = true;
    try {
      for (let effects = this.#pendingEffects; effects.length > 0; effects = this.#pendingEffects) {
        this.#pendingEffects = [];
        for (const effect of effects) this.#perform(effect);
      }
    } finally {
      this.#isWorking = false;
    }
    this.#setTimer();
  }

  #perform(effect) {
    switch (effect.do) {
      case "connect": return this.#connect(effect.url);
      case "send": return this.#transmit(effect.bytes);
      case "disconnect": return this.#disconnect();
      case "deliver": return this.#deliver(effect.push);
      case "settle":
        if (effect.error) effect.message.reject(effect.error);
        else effect.message.resolve(effect);
        return;
      case "tell": return this.#tell(effect);
    }
  }

  #setTimer() {
    const deadline = this.#machine.nextDeadline;
    if (deadline === this.#timerAt) return;
    this.#world.clearTimeout(this.#timer);
    this.#timerAt = deadline;
    if (deadline === Infinity) return;
    // Not before the deadline, and not above the limit of timers.
    const delay = Math.min(Math.max(Math.ceil(deadline - this.#world.now()), 0), 0x7fff_ffff);
    this.#timer = this.#world.setTimeout(() => {
      this.#timerAt = Infinity;
      this.#run((now) => this.#machine.passed(now));
    }, delay);
  }

  #connect(index) {
    let socket;
    try {
      socket = this.#world.makeSocket(this.#urls[index]);
    } catch {
      // For example for an address that the page's policy forbids.
      return this.#run((now) => this.#machine.disconnected(now));
    }
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    // A socket that was given up may still cause events.
    const whileCurrent = (event) => (detail) => {
      if (socket === this.#socket) this.#run((now) => event(now, detail));
    };
    socket.onopen = whileCurrent((now) => this.#machine.connected(now, this.#metadata()));
    socket.onmessage = whileCurrent((now, { data }) =>
      this.#machine.received(typeof data === "string" ? null : new Uint8Array(data), now));
    socket.onclose = whileCurrent((now) => {
      this.#socket = null;
      this.#machine.disconnected(now);
    });
    // A close event follows.
    socket.onerror = () => {};
  }

  #metadata() {
    return new Map(Object.entries(this.#options.metadata?.() ?? {}));
  }

  #transmit(bytes) {
    const socket = this.#socket;
    if (!socket || socket.readyState !== 1) return;
    if (socket.bufferedAmount > MAXIMUM_BUFFERED) {
      this.#disconnect();
      return this.#run((now) => this.#machine.disconnected(now));
    }
    socket.send(bytes);
  }

  #disconnect() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #tell({ event, state, delay, code, message, resumed, metadata, url, inDoubt, reason }) {
    const { onState, onOpened, onLost } = this.#options;
    const address = this.#urls[url];
    if (event === "state" && state !== "greeting") {
      this.#guard(() => onState?.({ state, url: address, delay, code, message }));
    } else if (event === "opened") {
      this.#guard(() => onOpened?.({ resumed, metadata, url: address }));
    } else if (event === "lost") {
      const messages = inDoubt.map(({ method, payload, isRequest }) => ({ method, payload, isRequest }));
      this.#guard(() => onLost?.({ reason, inDoubt: messages }));
    }
  }

  #deliver(push) {
    const inbox = this.#inboxes.get(push.method);
    inbox.waiting.push(push);
    if (!inbox.isBusy) this.#work(inbox);
  }

  /** Hands messages of a method to its handler until there are none, or until one takes longer. */
  #work(inbox) {
    while (inbox.waiting.length > 0) {
      const push = inbox.waiting.shift();
      const taken = this.#guard(() => inbox.take(inbox.type.decode(push.payload), push.metadata));
      const consume = () => this.#run((now) => this.#machine.consumed(push, now));
      if (typeof taken?.then === "function") {
        inbox.isBusy = true;
        Promise.resolve(taken).catch((error) => this.#problem(error)).then(() => {
          inbox.isBusy = false;
          consume();
          this.#work(inbox);
        });
        return;
      }
      consume();
    }
  }

  /** Errors of the user's functions must not stop the session. */
  #guard(body) {
    try {
      return body();
    } catch (error) {
      this.#problem(error);
    }
  }

  #problem(error) {
    if (this.#options.onProblem) this.#options.onProblem(error);
    else console.error(error);
  }
}
