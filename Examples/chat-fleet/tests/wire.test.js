// Numbers, messages, and frames in a stream.
import assert from "node:assert/strict";
import test from "node:test";
import {
  Content, decodeFrame, delimited, encodeFrame, FrameDecoder, Kind, MessageType, Reader, varint, Violation, WireError,
} from "../page/lifeline-session.js";
import { bytes, hex, seededRandom } from "./support.js";

test("varints of Numbers and BigInts are read as they were written", () => {
  for (const [value, written] of [
    [0, "00"], [1, "01"], [127, "7f"], [128, "8001"], [300, "ac02"], [2 ** 32, "8080808010"],
    [Number.MAX_SAFE_INTEGER, "ffffffffffffff0f"],
  ]) {
    assert.equal(hex(varint(value)), written);
    assert.equal(hex(varint(BigInt(value))), written);
    assert.equal(new Reader(bytes(written)).number(), value);
    assert.equal(new Reader(bytes(written)).bigint(), BigInt(value));
  }
  assert.equal(hex(varint(-1n)), "ffffffffffffffffff01");
  assert.equal(new Reader(bytes("ffffffffffffffffff01")).bigint(), 2n ** 64n - 1n);
});

test("a number that a Number cannot hold is infinite, and padding does no harm", () => {
  assert.equal(new Reader(bytes("8080808080808010")).number(), Infinity);
  assert.equal(new Reader(bytes("ffffffffffffffffff01")).number(), Infinity);
  assert.equal(new Reader(bytes("8380808080808080 8000")).number(), 3);
});

test("numbers of over 64 bits and numbers that end early are refused", () => {
  for (const written of ["ffffffffffffffffff02", "ffffffffffffffffffff01", "80", ""]) {
    assert.throws(() => new Reader(bytes(written)).number(), WireError);
    assert.throws(() => new Reader(bytes(written)).bigint(), WireError);
  }
});

const Inner = new MessageType({ text: [1, "string"], length: [2, "uint32"] });
const Every = new MessageType({
  text: [1, "string"], data: [2, "bytes"], flag: [3, "bool"], small: [4, "int32"], large: [5, "uint64"],
  fixed: [6, "fixed64"], numbers: [7, "uint32", "repeated"], inner: [8, Inner], list: [9, Inner, "repeated"],
  headers: [10, "map"], signed: [11, "int64"], count: [12, "count"], texts: [13, "string", "repeated"],
  kind: [14, "enum"],
});

test("a message with every kind of field is read as it was written", () => {
  const message = {
    text: "Grüezi 😀", data: bytes("00ff"), flag: true, small: -5, large: 2n ** 64n - 1n, fixed: 7n, numbers: [1, 300],
    inner: { text: "a", length: 0 }, list: [{ text: "b", length: 1 }, { text: "", length: 2 }],
    headers: new Map([["k", "v"], ["__proto__", "x"]]), signed: -1n, count: 2 ** 40, texts: ["", "z"], kind: 3,
  };
  assert.deepEqual(Every.decode(Every.encode(message)), message);
});

test("absent fields have their initial values, which are not written", () => {
  const empty = Every.decode(bytes(""));
  assert.deepEqual(
    [empty.text, empty.flag, empty.large, empty.numbers, empty.inner, empty.headers.size], ["", false, 0n, [], null, 0],
  );
  assert.equal(Every.encode(empty).length, 0);
  assert.equal(hex(Every.encode({ inner: { text: "", length: 0 } })), "4200", "but a message is");
});

test("unknown fields are skipped, and numbers may stand apart or packed", () => {
  assert.deepEqual(Every.decode(bytes("f80105 f9010000000000000000 fa0102abcd fd0100000000 0a0161")).text, "a");
  assert.deepEqual(Every.decode(bytes("3801 380a")).numbers, [1, 10]);
  assert.deepEqual(Every.decode(bytes("3a020102")).numbers, [1, 2]);
});

test("what is no message is refused", () => {
  for (const written of ["0a05", "0a02c328", "0b", "00", "07", "0f", "f8ffffffff7f00", "310102"]) {
    assert.throws(() => Every.decode(bytes(written)), WireError, written);
  }
  assert.throws(() => Every.encode({ small: 2 ** 31 }), RangeError);
  assert.throws(() => Every.encode({ count: 1.5 }), RangeError);
});

test("a frame has one kind, or none", () => {
  assert.deepEqual(decodeFrame(bytes("")), { kind: 0, content: new Uint8Array(0) });
  assert.equal(decodeFrame(bytes("0805 7a00")).kind, Kind.blank, "a field of another wire type is no kind");
  assert.equal(hex(encodeFrame(Kind.urgentResponse, bytes("0801"))), "8202020801");
  for (const two of ["7a007a00", "7a00f20600"]) assert.throws(() => decodeFrame(bytes(two)), Violation);
});

test("frames are found however their stream is cut", () => {
  const random = seededRandom(7);
  const frames = Array.from({ length: 40 }, (_, index) => new Uint8Array(index * index * 11).fill(index));
  const stream = Buffer.concat(frames.map(delimited));
  for (let round = 0; round < 50; round += 1) {
    const decoder = new FrameDecoder(1 << 20);
    const found = [];
    const longest = round === 0 ? 1 : 1 + Math.floor(random() * 9_000);
    for (let position = 0; position < stream.length;) {
      const length = 1 + Math.floor(random() * longest);
      for (const frame of decoder.frames(stream.subarray(position, position + length))) found.push(frame.slice());
      position += length;
    }
    assert.equal(found.length, frames.length);
    for (const [index, frame] of found.entries()) assert.ok(Buffer.from(frame).equals(frames[index]));
  }
});

test("a length that is too long or malformed is refused before anything is kept", () => {
  for (const written of ["8180808010", "ffffffff1f", "8180808080", "8110"]) {
    assert.throws(() => [...new FrameDecoder(2_048).frames(bytes(written))], WireError, written);
  }
  assert.doesNotThrow(() => [...new FrameDecoder(2_048).frames(bytes("8010"))]);
});

test("the request's timeout stands in front, padded to five bytes", () => {
  // docs/session-protocol.md: 30,000 is 08 b0 ea 81 80 00.
  const read = new MessageType({ timeout: [1, "uint32"], serial: [2, "uint32"] }).decode(bytes("08b0ea818000 1001"));
  assert.deepEqual(read, { timeout: 30_000, serial: 1 });
  assert.equal(Content.request.decode(bytes("08b0ea818000 1001")).serial, 1);
});
