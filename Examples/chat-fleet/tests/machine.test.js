// The rules of docs/session-protocol.md, one by one. The test plays the server.
import assert from "node:assert/strict";
import test from "node:test";
import { defaultTimes, GoodbyeCode, InboundLane, OutboundLane, Violation } from "../page/lifeline-session.js";
import { bytes, frame, hex, Script, seededRandom, sessionID, terms, token } from "./support.js";

const said = (payload = bytes("0a0161")) => frame("push", { method: 1, payload });
const saidMethod = frame("method", { number: 1, name: "s/Said" });
/** Frames of kinds that this version does not have. */
const unknown = { ordinary: bytes("03fa0100"), urgent: bytes("039a0200"), without: bytes("03ca0300") };

const ids = "1210 0102030405060708090a0b0c0d0e0f10 1a10 a1a2a3a4a5a6a7a8a9aaabacadaeafb0";
const encodedTerms = "3a15 08808004 1080808004 18808010 208008 2880808002";

test("the exchange of the document, byte by byte", () => {
  const script = new Script({ handledMethods: new Set(["chat.v1.Chat/Said"]) });
  const assertSent = (expected) => assert.equal(hex(script.sent), hex(bytes(expected)));
  script.connect();
  assertSent(`1f 0a1d 08011001 2801 ${encodedTerms}`);
  script.receive(bytes(`43 1241 0801 ${ids} 28c0a907 ${encodedTerms}`));
  script.push("chat.v1.Chat/Say", bytes("0a026869"));
  assertSent("16 7214 0801 1210 636861742e76312e436861742f536179 0a 4208 0801 1a04 0a026869");
  script.receive(bytes("04 3202 0802"));
  const call = script.ask("chat.v1.Chat/Who", 30_000, new Uint8Array(0));
  assertSent("16 7214 0802 1210 636861742e76312e436861742f57686f 0c 4a0a 08b0ea818000 1001 1802");
  script.settled;
  script.receive(bytes("0c 820209 0801 3205 0a03616e6e 04 3202 0804"));
  const [{ message, payload }] = script.settled;
  assert.equal(message, call);
  assert.equal(hex(payload), "0a03616e6e");
  script.pass(20);
  assertSent("04 3202 1001");
  // The server names a method and pushes; the handler takes long. (The document's stream is left out.)
  script.receive(bytes("17 7215 0801 1211 636861742e76312e436861742f53616964 0a 4208 0801 1a04 0a02796f"));
  script.pass(20);
  assertSent("06 3204 0801 1001");
  script.push("chat.v1.Chat/Say", bytes("0a03627965"));
  assertSent("0b 4209 0801 1a05 0a03627965");
  script.tell("disconnected");
  script.pass(10_000);
  script.connect();
  // session_id and token have other numbers here.
  const claim = ids.replace("1210", "1a10").replace(" 1a10 a1", " 2210 a1");
  assertSent(`4b 0a49 08011001 ${claim} 2802 3206 080110021801 ${encodedTerms}`);
  script.receive(bytes(`4b 1249 0801 ${ids} 2001 28c0a907 3204 08041004 ${encodedTerms}`));
  assertSent("0b 4209 0801 1a05 0a03627965");
  script.receive(bytes("04 3202 0805"));
  const [{ push }] = script.took("deliver");
  script.tell("consumed", push);
  script.tell("close");
  assertSent("06 3204 0802 1001 04 1a02 0801");
  assert.equal(script.took("disconnect").length, 2);
});

// Opening

test("nothing but pongs goes before the welcome", () => {
  const script = new Script();
  script.push();
  script.connect(new Map([["token", "x"]]));
  const [hello] = script.frames;
  assert.deepEqual([...hello.metadata], [["token", "x"]]);
  script.receive(frame("ping", { number: 2n ** 64n - 1n }));
  const [pong] = script.frames;
  assert.deepEqual([pong.kind, pong.number], ["pong", 2n ** 64n - 1n]);
  script.receive(frame("welcome", { version: 1, sessionID, token, terms }));
  assert.deepEqual(script.kinds, ["method", "push"]);
});

for (const [name, instead] of Object.entries({
  "a frame with a place": said(), "an urgent frame": unknown.urgent, "a hello": frame("hello"),
  "an unplaced push": frame("unplacedPush"), "bytes that are no frame": bytes("ffffffffff"),
  "bytes that are no message": bytes("020a05"), "a frame that is too long": bytes("8180808004"), "a text": null,
  "a welcome that cannot be read": bytes("03120108"),
})) {
  test(`${name} in place of a welcome costs the connection alone`, () => {
    const script = new Script().open();
    script.tell("disconnected");
    script.pass(1_000);
    script.connect();
    script.sent;
    script.tell("received", instead);
    assert.equal(script.machine.state, "waiting");
    assert.deepEqual(script.kinds, []);
    script.pass(1_000);
    script.connect();
    assert.equal(hex(script.frames[0].sessionID), hex(sessionID));
  });
}

test("what has no place may come before the welcome", () => {
  const script = new Script();
  script.connect();
  const [acknowledgement, credit] = [frame("acknowledgement", { ordinary: 1 }), frame("credit", { method: 1 })];
  script.receive(bytes("00"), acknowledgement, credit, unknown.without);
  assert.equal(script.machine.state, "greeting");
});

for (const [name, welcome] of Object.entries({
  "another version": { version: 2 }, "a short id": { sessionID: bytes("01") }, "a short token": { token: bytes("01") },
  "no terms": { terms: null }, "a window without frames": { terms: { ...terms, windowFrames: 0 } },
  "a window that is too small": { terms: { ...terms, windowBytes: 4_095 } },
  "too little credit": { terms: { ...terms, credit: 65_535 } },
  "frames that are too short": { terms: { ...terms, maximumFrame: 4_095 } },
  "a session that was not named": { resumed: true },
  "too much metadata": { metadata: new Map(Array.from({ length: 129 }, (_, index) => [`${index}`, ""])) },
})) {
  test(`a welcome with ${name} breaks the rules`, () => {
    const script = new Script();
    script.open(welcome);
    assertViolation(script);
  });
}

test("a progress that does not fit what was sent breaks the rules", () => {
  for (const progress of [
    { processed: 0, received: 0 }, { processed: 2, received: 1 }, { processed: 4, received: 4 },
    { processed: 1, received: 2 }, { processed: 2, received: 2, urgent: 1 },
  ]) {
    const script = new Script().open();
    script.push();
    script.push();
    script.receive(frame("acknowledgement", { ordinary: 1, ranges: [1, 1] }));
    script.effects = [];
    script.resume(progress);
    assertViolation(script);
  }
});

function assertViolation(script) {
  const [goodbye] = script.frames.slice(-1);
  assert.deepEqual([goodbye?.kind, goodbye?.code], ["goodbye", GoodbyeCode.violation]);
  assert.ok(goodbye.message.length > 0);
  assert.equal(script.machine.state, "waiting");
  script.pass(1_000);
  script.connect();
  assert.equal(script.frames.at(-1).sessionID.length, 0, "another session begins");
}

// Broken rules

for (const [name, wrong] of Object.entries({
  "two kinds": bytes("047a007a00"), "a malformed length": bytes("ffffffff1f"), "a frame too long": bytes("8180808004"),
  "no message": bytes("02420a"), "a text": null, "a second welcome": frame("welcome"), "a hello": frame("hello"),
  "a method with a wrong number": frame("method", { number: 2, name: "s/Other" }),
  "a method without a name": frame("method", { number: 1 }),
  "a method with a long name": frame("method", { number: 1, name: "s".repeat(257) }),
  "a push without a method": said(), "an unplaced push without a method": frame("unplacedPush", { method: 1 }),
  "a request with serial 0": Buffer.concat([saidMethod, frame("request", { method: 1 })]),
  "a request without a method": frame("request", { serial: 1, method: 1 }),
  "a request with parts and payload": Buffer.concat([
    saidMethod, frame("request", { serial: 1, method: 1, partsFollow: true, payload: bytes("00") }),
  ]),
  "a name that has a number": Buffer.concat([saidMethod, frame("method", { number: 2, name: "s/Said" })]),
  "an acknowledged place that was not sent": frame("acknowledgement", { ordinary: 1 }),
  "an acknowledged urgent place that was not sent": frame("acknowledgement", { urgent: 1 }),
  "an odd number of ranges": frame("acknowledgement", { ranges: [1] }),
  "an empty range": frame("acknowledgement", { ranges: [1, 0] }),
  "a range beyond what was sent": frame("acknowledgement", { ranges: [1, Number.MAX_SAFE_INTEGER] }),
  "credit for nothing": frame("credit", { bytes: 5 }), "credit for two": frame("credit", { method: 1, request: 1 }),
  "too many entries of metadata": Buffer.concat([
    saidMethod, frame("push", { method: 1, metadata: new Map(Array.from({ length: 129 }, (_, at) => [`${at}`, ""])) }),
  ]),
  "too much metadata": Buffer.concat([
    saidMethod, frame("push", { method: 1, metadata: new Map([["k", "v".repeat(65_600)]]) }),
  ]),
  "text that is not UTF-8": bytes("07 7205 0801 1201ff"),
})) {
  test(`${name} breaks the rules`, () => {
    const script = new Script().open();
    script.tell("received", wrong);
    assertViolation(script);
  });
}

test("what may come and says nothing does no harm, and counts places", () => {
  const script = new Script().open();
  script.receive(
    bytes("00"), unknown.ordinary, unknown.urgent, unknown.without, frame("blank"), frame("response", { serial: 9 }),
    frame("urgentResponse", { serial: 9 }), frame("cancel", { serial: 9 }), frame("requestEnd"), frame("responsePart"),
    frame("credit", { method: 9, bytes: 1 }), frame("pong", { number: 1n }), bytes("02 0801"),
  );
  script.pass(20);
  const [{ kind, ordinary, urgent }] = script.frames;
  assert.deepEqual([kind, ordinary, urgent], ["acknowledgement", 5, 3]);
  assert.equal(script.machine.state, "open");
});

// Acknowledgements

test("acknowledgements are told within 20 ms, or after 16 messages, or after 32 KiB, or with other frames", () => {
  const script = new Script({ handledMethods: new Set() }).open();
  script.receive(saidMethod);
  script.pass(19);
  assert.deepEqual(script.kinds, []);
  script.pass(1);
  assert.deepEqual(script.frames.map(({ ordinary }) => ordinary), [1]);
  script.receive(...Array(15).fill(said()));
  assert.deepEqual(script.kinds, []);
  script.receive(said());
  assert.deepEqual(script.frames.map(({ ordinary }) => ordinary), [17]);
  script.receive(said(new Uint8Array(33_000)));
  assert.deepEqual(script.frames.map(({ ordinary }) => ordinary), [18]);
  script.receive(said());
  script.push();
  assert.deepEqual(script.kinds, ["method", "push", "acknowledgement"]);
  script.pass(60);
  assert.deepEqual(script.kinds, [], "it was told");
});

test("a slow handler holds back only the acknowledgement of its own message", () => {
  const script = new Script({ handledMethods: new Set(["s/Said", "s/Other"]) }).open();
  const other = frame("push", { method: 2 });
  script.receive(saidMethod, frame("method", { number: 2, name: "s/Other" }), said(), other, other, said(), other);
  const pushes = script.took("deliver").map(({ push }) => push);
  for (const push of pushes.filter(({ method }) => method === "s/Other")) script.tell("consumed", push);
  script.pass(20);
  let [{ ordinary, ranges }] = script.frames;
  assert.deepEqual([ordinary, ranges], [2, [1, 2, 1, 1]], "4, 5 and 7");
  script.resume({ processed: 0, received: 0 });
  [{ ordinary, ranges }] = script.frames;
  assert.deepEqual([ordinary, ranges], [2, [1, 2, 1, 1]], "all ranges are told again");
  for (const push of pushes.filter(({ method }) => method === "s/Said")) script.tell("consumed", push);
  script.pass(20);
  [{ ordinary, ranges }] = script.frames;
  assert.deepEqual([ordinary, ranges], [7, []]);
});

test("what is processed between the hello and the welcome is acknowledged", () => {
  const script = new Script().open();
  script.receive(saidMethod, said());
  const [{ push }] = script.took("deliver");
  script.tell("disconnected");
  script.pass(1_000);
  script.connect();
  assert.equal(script.frames.at(-1).progress.processed, 1);
  script.tell("consumed", push);
  script.receive(frame("welcome", { version: 1, sessionID, token, terms, resumed: true }));
  const acknowledged = script.frames.filter(({ kind }) => kind === "acknowledgement").map(({ ordinary }) => ordinary);
  assert.deepEqual(acknowledged, [2]);
});

test("an inbound lane acknowledges in whatever order frames are processed", () => {
  const lane = new InboundLane();
  const window = { windowFrames: 20, windowBytes: 2_000 };
  for (let place = 1; place <= 12; place += 1) assert.equal(lane.receive(66, window), place);
  for (const place of [12, 7, 2, 4, 1, 8, 3]) lane.process(place, 66);
  // The example of the document.
  assert.deepEqual([lane.processed, lane.ranges], [4, [2, 2, 3, 1]]);
  // Between two ranges.
  for (const place of [10, 11]) lane.process(place, 66);
  assert.deepEqual(lane.ranges, [2, 2, 1, 3]);
  for (const place of [6, 5, 9]) lane.process(place, 66);
  assert.deepEqual([lane.processed, lane.ranges], [12, []]);
  for (let count = 0; count < 20; count += 1) lane.receive(66, window);
  assert.throws(() => lane.receive(66, window), Violation);
});

test("an outbound lane keeps what is not acknowledged", () => {
  const lane = new OutboundLane();
  for (let place = 1; place <= 12; place += 1) lane.add(new Uint8Array(2));
  assert.equal(lane.cost, 12 * 66);
  assert.deepEqual(lane.acknowledge(4, [2, 2, 3, 1]).map(({ place }) => place), [1, 2, 3, 4, 7, 8, 12]);
  assert.deepEqual(lane.acknowledge(2, [3, 3]).map(({ place }) => place), [6], "twice says nothing new");
  assert.deepEqual(lane.entries.map(({ place }) => place), [5, 9, 10, 11]);
  assert.equal(lane.cost, 4 * 66);
  assert.throws(() => lane.resume(3, 12), Violation);
  assert.throws(() => lane.resume(5, 11), Violation, "12 was acknowledged");
  const { acknowledged, missing } = lane.resume(9, 12);
  assert.deepEqual([acknowledged.map(({ place }) => place), missing], [[5, 9], []]);
  assert.throws(() => new OutboundLane().acknowledge(0, Array(2_050).fill(1)), Violation);
});

// Windows and credit

test("a window is never exceeded, in frames or in bytes", () => {
  const script = new Script().open({ terms: { ...terms, windowFrames: 4 } });
  for (let count = 0; count < 6; count += 1) script.push();
  assert.deepEqual(script.kinds, ["method", "push", "push", "push"]);
  script.receive(frame("acknowledgement", { ordinary: 2 }));
  assert.deepEqual(script.kinds, ["push", "push"]);
  script.receive(frame("acknowledgement", { ranges: [3, 1] }));
  assert.deepEqual(script.kinds, ["push"]);
  const small = new Script().open({ terms: { ...terms, windowBytes: 4_096 } });
  small.push("s/Say", new Uint8Array(3_000));
  small.push("s/Say", new Uint8Array(1_000));
  const large = small.push("s/Say", new Uint8Array(5_000));
  assert.deepEqual(small.kinds, ["method", "push"]);
  small.receive(frame("acknowledgement", { ordinary: 2 }));
  assert.deepEqual(small.kinds, ["push"]);
  const refused = small.settled.find(({ message }) => message === large);
  assert.equal(refused.code, "tooLarge");
});

test("a window does not shrink during a session, and grows", () => {
  const script = new Script().open({ terms: { ...terms, windowFrames: 4 } });
  script.resume({}, { terms: { ...terms, windowFrames: 1 } });
  for (let count = 0; count < 6; count += 1) script.push();
  assert.equal(script.kinds.length, 4);
  script.resume({ received: 4 }, { terms: { ...terms, windowFrames: 6 } });
  assert.equal(script.kinds.length, 2);
});

test("a frame of any size goes while there is credit, and the next one waits for more; other methods do not", () => {
  const script = new Script().open({ terms: { ...terms, credit: 64 << 10 } });
  script.push("s/Say", new Uint8Array(40_000));
  script.push("s/Say", new Uint8Array(40_000));
  script.push("s/Say", new Uint8Array(10));
  script.push("s/Else", new Uint8Array(10));
  assert.deepEqual(script.kinds, ["method", "push", "push", "method", "push"]);
  script.receive(frame("credit", { method: 1, bytes: 80_000 }));
  assert.deepEqual(script.kinds, [], "80,148 are used");
  script.receive(frame("credit", { method: 1, bytes: 80_200 }));
  assert.deepEqual(script.kinds, ["push"]);
  script.receive(frame("credit", { method: 1, bytes: 90_000 }), frame("credit", { method: 1, bytes: 80_000 }));
  script.push();
  assert.deepEqual(script.kinds, ["push"], "a lower sum says nothing");
});

test("credit is granted when half of it was consumed, and told again on each connection", () => {
  const script = new Script().open();
  script.receive(saidMethod, ...Array(3).fill(said(new Uint8Array(60_000))));
  assert.deepEqual(script.kinds, []);
  const pushes = script.took("deliver").map(({ push }) => push);
  for (const push of pushes.slice(0, 2)) script.tell("consumed", push);
  assert.ok(!script.kinds.includes("credit"));
  script.tell("consumed", pushes[2]);
  const cost = 60_074;
  const granted = script.frames.filter(({ kind }) => kind === "credit").map(({ method, bytes: sum }) => [method, sum]);
  assert.deepEqual(granted, [[1, (256 << 10) + 3 * cost]]);
  script.resume();
  const again = script.frames.filter(({ kind }) => kind === "credit").map(({ bytes: sum }) => sum);
  assert.deepEqual(again, [(256 << 10) + 3 * cost]);
});

test("pushes beyond their credit break the rules", () => {
  const script = new Script().open();
  script.receive(saidMethod, ...Array(3).fill(said(new Uint8Array(100_000))));
  assert.equal(script.machine.state, "open");
  script.receive(said());
  assertViolation(script);
});

test("what nobody handles is dropped, acknowledged, and granted again", () => {
  const script = new Script({ handledMethods: new Set() }).open();
  script.receive(saidMethod);
  for (let count = 0; count < 20; count += 1) script.receive(said(new Uint8Array(100_000)));
  assert.equal(script.machine.state, "open");
  assert.equal(script.took("deliver").length, 0);
});

test("unplaced pushes are taken while there is room", () => {
  const script = new Script().open();
  script.receive(saidMethod, ...Array(100).fill(frame("unplacedPush", { method: 1 })));
  const pushes = script.took("deliver").map(({ push }) => push);
  assert.equal(pushes.length, 64);
  for (const push of pushes) script.tell("consumed", push);
  script.receive(frame("unplacedPush", { method: 1 }));
  assert.equal(script.took("deliver").length, 1);
  script.pass(20);
  assert.deepEqual(script.frames.map(({ ordinary }) => ordinary), [1]);
});

test("no more is kept for the server than the limits say", () => {
  const script = new Script();
  for (let count = 0; count < 10_000; count += 1) script.push("s/Say", new Uint8Array(0));
  assert.deepEqual(script.settled, []);
  script.push();
  assert.deepEqual(script.settled.map(({ code }) => code), ["full"]);
  const large = new Script();
  for (let count = 0; count < 9; count += 1) large.push("s/Say", new Uint8Array(1_000_000));
  assert.deepEqual(large.settled.map(({ code }) => code), ["full"]);
  // Acknowledged messages do not count any more.
  large.open({ terms: { ...terms, credit: 2 ** 40, windowBytes: 2 ** 40 } });
  large.receive(frame("acknowledgement", { ordinary: 9 }));
  for (let count = 0; count < 8; count += 1) large.push("s/Say", new Uint8Array(1_000_000));
  assert.ok(large.settled.every(({ code }) => code === undefined));
});

// Requests

test("an answer ends a call once, and a status fails it", () => {
  const script = new Script().open();
  const [first, second] = [script.ask(), script.ask()];
  assert.deepEqual(script.frames.filter(({ kind }) => kind === "request").map(({ serial }) => serial), [1, 2]);
  script.receive(frame("urgentResponse", { serial: 2, status: 5, message: "nobody" }));
  script.receive(frame("response", { serial: 1, payload: bytes("0a00") }));
  script.receive(frame("urgentResponse", { serial: 1, status: 3 }));
  const [failed, answered, ...rest] = script.settled;
  const { message, code, error } = failed;
  assert.deepEqual([message, code, error.status, error.message], [second, "status", 5, "nobody"]);
  assert.deepEqual([answered.message, hex(answered.payload)], [first, "0a00"]);
  assert.deepEqual(rest, []);
});

test("no more requests run than the server takes, and pushes do not wait for them", () => {
  const script = new Script().open({ terms: { ...terms, maximumRequests: 1 } });
  script.ask();
  script.ask();
  script.push();
  assert.deepEqual(script.kinds, ["method", "request", "method", "push"]);
  script.receive(frame("urgentResponse", { serial: 1 }));
  assert.deepEqual(script.kinds, ["request", "acknowledgement"]);
});

test("a call that was sent and timed out is cancelled at the server, and its late answer dropped", () => {
  const script = new Script().open();
  script.ask("s/Ask", 500);
  script.sent;
  script.pass(499);
  assert.deepEqual(script.kinds, []);
  script.pass(1);
  const [cancel] = script.frames;
  assert.deepEqual([cancel.kind, cancel.serial], ["cancel", 1]);
  assert.deepEqual(script.settled.map(({ code }) => code), ["timedOut"]);
  script.receive(frame("urgentResponse", { serial: 1 }));
  assert.deepEqual(script.settled, []);
});

test("each call times out at its own time", () => {
  const script = new Script().open();
  const calls = [800, 500, 650].map((timeout) => script.ask("s/Ask", timeout));
  const settled = [];
  for (const duration of [500, 150, 150]) {
    script.pass(duration);
    settled.push(script.settled.map(({ message }) => calls.indexOf(message)));
  }
  assert.deepEqual(settled, [[1], [2], [0]]);
});

test("a call that was not sent is given up without a word", () => {
  const script = new Script();
  const call = script.ask("s/Ask", 500);
  script.ask("s/Ask", 500);
  script.tell("cancel", call);
  script.pass(500);
  assert.deepEqual(script.settled.map(({ code }) => code), ["cancelled", "timedOut"]);
  script.open();
  assert.deepEqual(script.kinds, []);
});

test("a request that is sent again says what is left of its time, or is a blank when it has ended", () => {
  const script = new Script().open();
  const [first, second] = [script.ask("s/Ask", 30_000), script.ask("s/Ask", 30_000)];
  script.sent;
  script.tell("cancel", first);
  assert.deepEqual(script.kinds, ["cancel"]);
  script.tell("disconnected");
  script.pass(4_000);
  script.effects = [];
  script.open({ resumed: true, progress: { processed: 0, received: 1 } });
  const [blank, request, cancel] = script.frames;
  assert.deepEqual([blank.kind, request.kind, cancel.kind], ["blank", "request", "cancel"]);
  assert.equal(hex(request.frame.subarray(2, 8)), hex(bytes("08 90 cb 81 80 00")), "26,000 ms");
  script.receive(frame("urgentResponse", { serial: 2 }));
  assert.deepEqual(script.settled.map(({ message }) => message), [second]);
});

test("a call that is answered with a stream fails, and is cancelled", () => {
  const script = new Script().open();
  script.ask();
  script.sent;
  script.receive(frame("responsePart", bytes("")), bytes("045a020801"), bytes("04 62020801"));
  assert.deepEqual(script.settled.map(({ code }) => code), ["malformed"]);
  assert.ok(script.kinds.includes("cancel"));
});

test("a server's requests are refused, and a flood of them breaks the rules", () => {
  const script = new Script().open();
  script.receive(saidMethod, frame("request", { serial: 7, method: 1 }));
  const [refusal] = script.frames;
  assert.deepEqual([refusal.kind, refusal.serial, refusal.status], ["urgentResponse", 7, 12]);
  for (let serial = 8; serial < 16_400 && script.machine.state === "open"; serial += 1) {
    script.receive(frame("request", { serial, method: 1 }));
  }
  assert.equal(script.machine.state, "waiting");
  assertViolation(script);
});

// Resuming, and sessions that are lost

test("only what the server has not received is sent again, and in order", () => {
  const script = new Script().open();
  for (const number of [1, 2, 3, 4]) script.push("s/Say", Uint8Array.of(8, number));
  script.sent;
  script.resume({ processed: 2, received: 3 });
  assert.deepEqual(script.frames.map(({ payload }) => hex(payload)), ["0803", "0804"]);
  assert.equal(script.settled.length, 1, "the first one is processed");
  script.receive(frame("acknowledgement", { ordinary: 5 }));
  assert.equal(script.settled.length, 3);
});

test("in a new session what was sent is in doubt, and the rest goes under new numbers", () => {
  const script = new Script().open({ terms: { ...terms, windowFrames: 4 } });
  const [sent, call] = [script.push("s/Say"), script.ask("s/Ask")];
  const waiting = script.push("s/Else");
  assert.deepEqual(script.kinds, ["method", "push", "method", "request"]);
  script.receive(saidMethod.subarray(0, 3));
  script.tell("disconnected");
  script.pass(1_000);
  script.told;
  script.open({ sessionID: token, token: sessionID });
  const lost = script.told.find(({ event }) => event === "lost");
  assert.deepEqual(lost.inDoubt, [sent, call]);
  const settled = script.settled.map(({ message, code }) => [message, code]);
  assert.deepEqual(settled, [[sent, "sessionLost"], [call, "sessionLost"]]);
  const [method, push] = script.frames;
  assert.deepEqual([method.number, method.name, push.method], [1, "s/Else", 1]);
  script.receive(frame("acknowledgement", { ordinary: 2 }));
  assert.deepEqual(script.settled.map(({ message }) => message), [waiting]);
  script.ask();
  assert.equal(script.frames.find(({ kind }) => kind === "request").serial, 2, "serials count on");
});

test("what was consumed of an earlier session is not acknowledged in the next one", () => {
  const script = new Script().open();
  script.receive(saidMethod, said());
  const [{ push }] = script.took("deliver");
  script.tell("disconnected");
  script.pass(1_000);
  script.open({ sessionID: token });
  script.sent;
  script.tell("consumed", push);
  script.pass(50);
  assert.deepEqual(script.kinds, []);
});

test("each hello has a higher attempt", () => {
  const script = new Script();
  const attempts = [];
  for (let count = 0; count < 3; count += 1) {
    script.connect();
    attempts.push(script.frames[0].attempt);
    script.tell("disconnected");
    script.pass(5_000);
  }
  assert.deepEqual(attempts, [1, 2, 3]);
});

// Goodbyes

for (const [name, code, state, whenOpen] of [
  ["CLOSED", GoodbyeCode.closed, "closed", true], ["REPLACED", GoodbyeCode.replaced, "closed", true],
  ["REFUSED", GoodbyeCode.refused, "closed", false], ["VERSION", GoodbyeCode.version, "closed", false],
  ["VIOLATION", GoodbyeCode.violation, "waiting", true], ["FULL", GoodbyeCode.full, "waiting", false],
  ["DRAINING", GoodbyeCode.draining, "waiting", false], ["one of a later version", 99, "waiting", false],
]) {
  test(`after the goodbye ${name} the client is ${state}`, () => {
    const script = new Script({ urlCount: 3 });
    const waiting = script.push();
    if (whenOpen) script.open({ terms: { ...terms, windowFrames: 1 } }); else script.connect();
    script.receive(frame("goodbye", { code, pauseMilliseconds: 7_000 }));
    assert.equal(script.machine.state, state);
    assert.equal(script.took("disconnect").length, 1);
    if (state === "closed") {
      assert.deepEqual(script.settled.map(({ message, code: failure }) => [message, failure]), [[waiting, "closed"]]);
      assert.equal(script.machine.nextDeadline, Infinity);
      assert.equal(script.told.at(-1).code, name.toLowerCase());
      script.push();
      assert.deepEqual(script.settled.map(({ code: failure }) => failure), ["closed"]);
    } else {
      const delay = code === GoodbyeCode.violation ? defaultTimes.firstDelay : 7_000;
      script.took("connect");
      script.pass(delay - 1);
      assert.equal(script.took("connect").length, 0);
      script.pass(1);
      assert.deepEqual(script.took("connect").map(({ url }) => url), [code === GoodbyeCode.violation ? 0 : 1]);
    }
  });
}

test("a pause of days is cut", () => {
  const script = new Script();
  script.connect();
  script.receive(frame("goodbye", { code: GoodbyeCode.full, pauseMilliseconds: 2 ** 52 }));
  assert.equal(script.machine.nextDeadline, script.now + 300_000);
});

test("after DRAINING what was begun ends, nothing else begins, and then the client goes to the next server", () => {
  const script = new Script({ urlCount: 2 }).open();
  script.took("connect");
  const call = script.ask();
  script.receive(frame("acknowledgement", { ordinary: 2 }));
  script.sent;
  script.receive(frame("goodbye", { code: GoodbyeCode.draining, pauseMilliseconds: 3_000 }));
  const later = script.push();
  assert.deepEqual(script.kinds, []);
  script.pass(100);
  script.receive(frame("urgentResponse", { serial: 1 }));
  assert.deepEqual(script.settled.map(({ message }) => message), [call]);
  assert.deepEqual(script.kinds, ["acknowledgement"], "and no goodbye");
  assert.equal(script.machine.state, "waiting");
  script.pass(2_899);
  assert.equal(script.took("connect").length, 0);
  script.pass(1);
  assert.deepEqual(script.took("connect").map(({ url }) => url), [1]);
  script.open({ resumed: true, progress: { processed: 2, received: 2 } });
  script.receive(frame("acknowledgement", { ordinary: 4 }));
  assert.deepEqual(script.settled.map(({ message }) => message), [later]);
});

// The connection

test("delays grow up to a bound, and begin anew after a connection that lasted", () => {
  const script = new Script({ times: { maximumDelay: 1_500 } });
  const delays = [];
  const lose = () => {
    script.tell("disconnected");
    delays.push(script.told.findLast(({ event }) => event === "state").delay);
    script.pass(delays.at(-1));
  };
  for (let count = 0; count < 5; count += 1) lose();
  script.open();
  script.pass(9_999);
  lose();
  script.open({ resumed: true });
  script.pass(10_000);
  lose();
  assert.deepEqual(delays, [250, 500, 1_000, 1_500, 1_500, 1_500, 250]);
});

test("delays are spread", () => {
  for (const [random, delay] of [[0, 200], [1, 300]]) {
    const script = new Script({ random: () => random });
    script.tell("disconnected");
    assert.equal(script.machine.nextDeadline - script.now, delay);
  }
});

test("a lost connection is tried at the same server first, a failed attempt at the next one", () => {
  const script = new Script({ urlCount: 3 });
  script.open();
  script.tell("disconnected");
  for (let count = 0; count < 3; count += 1) {
    script.pass(5_000);
    script.tell("disconnected");
  }
  assert.deepEqual(script.took("connect").map(({ url }) => url), [0, 0, 1, 2]);
});

test("an attempt that takes too long is given up, and reconnect() does not wait", () => {
  const script = new Script();
  script.pass(9_999);
  assert.equal(script.machine.state, "connecting");
  script.pass(1);
  assert.equal(script.machine.state, "waiting");
  script.tell("reconnect");
  assert.equal(script.machine.state, "connecting");
  script.connect();
  script.pass(10_000);
  assert.equal(script.machine.state, "waiting", "no welcome came");
});

test("a silent server is asked three times, and then left; any bytes are a sign of life", () => {
  const script = new Script().open();
  script.pass(29_999);
  script.receive(bytes("00"));
  script.pass(29_999);
  assert.deepEqual(script.kinds, []);
  script.pass(20_001);
  assert.deepEqual(script.frames.map(({ number }) => number), [1n, 2n, 3n]);
  script.pass(9_999);
  assert.equal(script.machine.state, "open");
  script.pass(1);
  assert.equal(script.machine.state, "waiting");
});

test("closing fails what is not processed, and says goodbye", () => {
  const script = new Script().open();
  const [pushed, asked] = [script.push(), script.ask()];
  script.sent;
  script.tell("close");
  assert.deepEqual(script.frames.map(({ kind, code }) => [kind, code]).at(-1), ["goodbye", GoodbyeCode.closed]);
  assert.deepEqual(script.settled.map(({ message, code }) => [message, code]), [[pushed, "closed"], [asked, "closed"]]);
  script.tell("disconnected");
  script.tell("close");
  assert.equal(script.machine.state, "closed");
  assert.deepEqual(script.took("connect").length, 1);
});

test("what comes behind the last frame of a connection is not taken", () => {
  const script = new Script().open();
  script.receive(saidMethod, bytes("047a007a00"), said(), said());
  assert.equal(script.took("deliver").length, 0);
  assertViolation(script);
  for (const [code, state] of [[GoodbyeCode.closed, "closed"], [GoodbyeCode.full, "waiting"]]) {
    const left = new Script().open();
    left.receive(saidMethod, frame("goodbye", { code }), said());
    assert.deepEqual([left.took("deliver").length, left.machine.state], [0, state]);
  }
});

test("events of a connection that is over do nothing", () => {
  const script = new Script().open();
  script.tell("disconnected");
  script.effects = [];
  for (const event of ["disconnected", "start"]) script.tell(event);
  script.connect();
  script.receive(said());
  assert.deepEqual(script.effects, []);
});

test("whatever bytes come, the machine goes on", () => {
  const random = seededRandom(11);
  const samples = [
    saidMethod, said(), frame("acknowledgement", { ordinary: 1, urgent: 1, ranges: [1, 1] }),
    frame("ping", { number: 5n }), frame("credit", { method: 1, bytes: 9 }), frame("request", { serial: 3, method: 1 }),
    frame("goodbye", { code: 2 }),
    frame("urgentResponse", { serial: 1, payload: bytes("0a00") }), frame("response", { serial: 1, status: 3 }),
    frame("welcome", { version: 1, sessionID, token, terms, resumed: true, progress: { processed: 1, received: 2 } }),
    unknown.ordinary, unknown.urgent, unknown.without, frame("unplacedPush", { method: 1 }),
  ];
  let violationCount = 0;
  for (let round = 0; round < 1_000; round += 1) {
    const script = new Script();
    if (random() < 0.8) script.open(); else script.connect();
    script.push();
    script.ask();
    const stream = Buffer.concat(Array.from({ length: 6 }, () => samples[Math.floor(random() * samples.length)]));
    for (let count = random() * 4; count > 0; count -= 1) stream[Math.floor(random() * stream.length)] = random() * 256;
    script.tell("received", stream);
    for (const { push } of script.took("deliver")) script.tell("consumed", push);
    script.pass(5_000);
    violationCount += script.frames.filter(({ code }) => code === GoodbyeCode.violation).length;
  }
  assert.ok(violationCount > 100 && violationCount < 900, `${violationCount}`);
});
