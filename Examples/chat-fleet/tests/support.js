// Shared by the tests: a machine with a scripted server, a manual clock, and a server that keeps sessions.
import { webcrypto } from "node:crypto";
import {
  concatenate, Content, decodeFrame, delimited, encodeFrame, FrameDecoder, Kind, MessageType, SessionMachine,
} from "../page/lifeline-session.js";

// Node 18 has no such global.
globalThis.crypto ??= webcrypto;

export const Note = new MessageType({ number: [1, "uint32"], text: [2, "string"] });

export const hex = (bytes) => Buffer.from(bytes).toString("hex");
export const bytes = (text) => Uint8Array.from(Buffer.from(text.replace(/\s/g, ""), "hex"));

/** Random numbers from 0 to 1 that follow from a seed: mulberry32. */
export function seededRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const nameByKind = new Map(Object.entries(Kind).map(([name, kind]) => [kind, name]));
const contentByKind = {
  pong: Content.ping, urgentResponse: Content.response, cancel: Content.serial, unplacedPush: Content.push,
  blank: Content.serial, requestEnd: Content.serial, responsePart: Content.serial,
};

/** A frame as an object: the name of its kind, and its contents. */
export function readFrame(frame) {
  const { kind, content } = decodeFrame(frame);
  const name = nameByKind.get(kind);
  return { kind: name, frame, ...(contentByKind[name] ?? Content[name]).decode(content) };
}

/** The bytes of a frame, with its length prefix. */
export function frame(name, fields = {}) {
  return delimited(encodeFrame(Kind[name], (contentByKind[name] ?? Content[name]).encode(fields)));
}

export const terms = {
  windowFrames: 65_536, windowBytes: 8 << 20, credit: 256 << 10, maximumRequests: 1_024, maximumFrame: 4 << 20,
};
export const sessionID = bytes("0102030405060708090a0b0c0d0e0f10");
export const token = bytes("a1a2a3a4a5a6a7a8a9aaabacadaeafb0");

/** A machine whose server is played by the test. */
export class Script {
  now = 1_000;
  effects = [];
  #decoder = new FrameDecoder(1 << 30);

  constructor(options = {}) {
    this.machine = new SessionMachine({ random: () => 0.5, handledMethods: new Set(["s/Said"]), ...options });
    this.machine.start(this.now);
    this.#take();
  }

  /** Passes an event to the machine. */
  tell(event, ...details) {
    this.machine[event](...details, this.now);
    this.#take();
  }

  #take() {
    this.effects.push(...this.machine.takeEffects());
  }

  /** Lets time pass, deadline by deadline. */
  pass(duration) {
    const end = this.now + duration;
    while (this.machine.nextDeadline <= end) {
      this.now = Math.max(this.machine.nextDeadline, this.now);
      this.tell("passed");
    }
    this.now = end;
  }

  connect(metadata) {
    this.machine.connected(this.now, metadata);
    this.#take();
  }

  receive(...parts) {
    this.tell("received", concatenate(parts));
  }

  /** Opens the connection with this welcome, and discards the frames sent so far. */
  open(welcome = {}) {
    this.connect();
    this.sent;
    this.receive(frame("welcome", { version: 1, sessionID, token, terms, keptMilliseconds: 120_000, ...welcome }));
    return this;
  }

  /** Loses the connection, and resumes the session over another one. */
  resume(progress = {}, welcome = {}) {
    this.tell("disconnected");
    this.pass(this.machine.nextDeadline - this.now);
    this.effects = [];
    return this.open({ resumed: true, progress, ...welcome });
  }

  push(method = "s/Say", payload = bytes("0a0161"), metadata = new Map()) {
    const message = { method, payload, metadata, isRequest: false, deadline: Infinity };
    this.tell("send", message);
    return message;
  }

  ask(method = "s/Ask", timeout = Infinity, payload = bytes("0a0161")) {
    const message = { method, payload, metadata: new Map(), isRequest: true, deadline: this.now + timeout };
    this.tell("send", message);
    return message;
  }

  /** The effects of a kind since the last time. */
  took(kind) {
    const taken = this.effects.filter((effect) => effect.do === kind);
    this.effects = this.effects.filter((effect) => effect.do !== kind);
    return taken;
  }

  /** The bytes that were sent since the last time. */
  get sent() {
    return concatenate([new Uint8Array(0), ...this.took("send").map((effect) => effect.bytes)]);
  }

  /** The frames that were sent since the last time. */
  get frames() {
    return [...this.#decoder.frames(this.sent)].map((sent) => readFrame(sent.slice()));
  }

  get kinds() {
    return this.frames.map(({ kind }) => kind);
  }

  get settled() {
    return this.took("settle").map(({ message, error, payload }) => ({ message, code: error?.code, error, payload }));
  }

  get told() {
    return this.took("tell");
  }
}

/** Time that passes from event to event, and sockets whose bytes take some of it. */
export class FakeWorld {
  time = 0;
  #events = [];
  #count = 0;

  constructor(random, accept) {
    this.random = random;
    this.accept = accept;
  }

  now = () => this.time;

  setTimeout = (action, delay) => {
    const event = { time: this.time + delay, order: this.#count++, action };
    this.#events.push(event);
    return event;
  };

  clearTimeout = (event) => {
    this.#events = this.#events.filter((other) => other !== event);
  };

  makeSocket = (url) => new FakeSocket(this, url);

  /** Runs events until a condition holds. Fails if it does not within an hour. */
  async run(until) {
    // Reactions of promises run before the next event.
    const settle = () => new Promise((resolve) => { setImmediate(resolve); });
    const end = this.time + 3_600_000;
    for (await settle(); !until(); await settle()) {
      if (this.#events.length === 0 || this.time > end) throw new Error("this did not come true");
      const next = this.#events.reduce((a, b) => (b.time - a.time || b.order - a.order) < 0 ? b : a);
      this.clearTimeout(next);
      this.time = next.time;
      next.action();
    }
  }
}

/** The parts of a WebSocket that a session uses. It is cut after `budget` bytes in both directions together. */
class FakeSocket {
  readyState = 0;
  bufferedAmount = 0;
  budget = Infinity;
  #isCut = false;

  constructor(world, url) {
    this.world = world;
    world.setTimeout(() => {
      if (this.#isCut) return;
      this.peer = world.accept(this, url);
      if (!this.peer) return this.cut();
      this.readyState = 1;
      this.onopen({});
    }, 1);
  }

  /** Bytes of the client. */
  send(sent) {
    this.#carry(sent.slice(), (part) => this.peer.received(part));
  }

  /** Bytes of the server, in messages that end anywhere. */
  sendBack(sent) {
    for (let position = 0; position < sent.length;) {
      const length = 1 + Math.floor(this.world.random() ** 4 * 3_000);
      const part = sent.slice(position, position + length);
      this.#carry(part, (arrived) => this.onmessage({ data: Uint8Array.from(arrived).buffer }));
      position += length;
    }
  }

  #carry(part, arrive) {
    this.world.setTimeout(() => {
      if (this.#isCut) return;
      const whole = part.length <= this.budget;
      const arrived = whole ? part : part.slice(0, this.budget);
      this.budget -= arrived.length;
      if (arrived.length > 0) arrive(arrived);
      if (!whole) this.cut();
    }, 1);
  }

  cut() {
    if (this.#isCut) return;
    this.#isCut = true;
    this.readyState = 3;
    this.onclose({ code: 1006 });
  }

  close() {
    this.#isCut = true;
    this.readyState = 3;
  }
}

/**
 * A simple session server: it keeps every frame that it has sent. It records the numbers of pushes and requests,
 * answers the latter with their own payloads, and acknowledges at arbitrary times.
 */
export class FakeServer {
  sessions = new Map();
  notes = [];
  asked = [];
  goodbyes = [];
  connectionCount = 0;
  resumedCount = 0;
  /** The budget of each connection. */
  budget = () => Infinity;
  terms = terms;

  constructor(random) {
    this.random = random;
  }

  accept = (socket) => {
    this.connectionCount += 1;
    socket.budget = this.budget();
    return new FakeConnection(this, socket);
  };

  forgetSessions() {
    this.sessions.clear();
  }

  push(method, payload) {
    for (const session of this.sessions.values()) session.push(method, payload);
  }

  /** Answers a request with `{ payload, status }`, or with null not at all. */
  answer(session, method, payload) {
    this.asked.push(Note.decode(payload).number);
    return { payload };
  }
}

class FakeSession {
  id = crypto.getRandomValues(new Uint8Array(16));
  token = crypto.getRandomValues(new Uint8Array(16));
  received = 0;
  urgentReceived = 0;
  methods = [null];
  connection = null;
  ordinary = [];
  urgent = [];
  named = new Map();
  waiting = [];
  /** The client's acknowledgements of processed places. */
  processed = 0;

  push(method, payload, metadata = new Map()) {
    let credit = this.named.get(method);
    if (!credit) {
      credit = { number: this.named.size + 1, used: 0, granted: 256 << 10 };
      this.named.set(method, credit);
      this.send("ordinary", frame("method", { number: credit.number, name: method }));
    }
    this.waiting.push([credit, frame("push", { method: credit.number, payload, metadata })]);
    this.pushWaiting();
  }

  pushWaiting() {
    while (this.waiting.length > 0 && this.waiting[0][0].used < this.waiting[0][0].granted) {
      const [credit, sent] = this.waiting.shift();
      credit.used += frameCost(sent);
      this.send("ordinary", sent);
    }
  }

  send(lane, sent) {
    this[lane].push(sent);
    this.connection?.socket.sendBack(sent);
  }
}

/** The cost of a frame with its length prefix. */
const frameCost = (sent) => sent.length - (sent.length < 129 ? 1 : sent.length < 16386 ? 2 : 3) + 64;

class FakeConnection {
  #decoder = new FrameDecoder(1 << 30);
  #session = null;
  #unacknowledgedCount = 0;

  constructor(server, socket) {
    this.server = server;
    this.socket = socket;
  }

  received(part) {
    for (const sent of this.#decoder.frames(part)) this.#take(readFrame(sent));
    // Sometimes later, so that windows fill.
    const acknowledge = () => this.#acknowledge();
    if (this.server.random() < 0.5) acknowledge(); else this.socket.world.setTimeout(acknowledge, 20);
  }

  #acknowledge() {
    if (this.#session?.connection !== this) return;
    const { received, urgentReceived } = this.#session;
    this.socket.sendBack(frame("acknowledgement", { ordinary: received, urgent: urgentReceived }));
    this.#unacknowledgedCount = 0;
  }

  #take(taken) {
    const session = this.#session;
    if (taken.kind === "hello") return this.#open(taken);
    if (session?.connection !== this) return;
    if (Kind[taken.kind] >= 8 && Kind[taken.kind] <= 31) {
      session.received += 1;
      this.#unacknowledgedCount += 1;
      if (this.#unacknowledgedCount === 16) this.#acknowledge();
    } else if (Kind[taken.kind] >= 32) {
      session.urgentReceived += 1;
    }
    switch (taken.kind) {
      case "method": session.methods.push(taken.name); break;
      case "push": this.server.notes.push(Note.decode(taken.payload).number); break;
      case "request": {
        const answer = this.server.answer(session, session.methods[taken.method], taken.payload);
        if (answer) session.send("urgent", frame("urgentResponse", { serial: taken.serial, ...answer }));
        break;
      }
      case "acknowledgement": session.processed = Math.max(session.processed, taken.ordinary); break;
      case "credit":
        for (const credit of session.named.values()) {
          if (credit.number === taken.method) credit.granted = Math.max(credit.granted, taken.bytes);
        }
        session.pushWaiting();
        break;
      case "goodbye": this.server.goodbyes.push(taken.message); break;
    }
  }

  #open({ sessionID: id, progress }) {
    let session = this.server.sessions.get(hex(id));
    const resumed = session !== undefined;
    if (!session) {
      session = new FakeSession();
      this.server.sessions.set(hex(session.id), session);
    }
    this.server.resumedCount += resumed ? 1 : 0;
    this.#session = session;
    session.connection = this;
    this.socket.sendBack(frame("welcome", {
      version: 1, sessionID: session.id, token: session.token, resumed, terms: this.server.terms,
      progress: { processed: session.received, received: session.received, urgent: session.urgentReceived },
    }));
    if (!resumed) return;
    for (const sent of session.ordinary.slice(progress.received)) this.socket.sendBack(sent);
    for (const sent of session.urgent.slice(progress.urgent)) this.socket.sendBack(sent);
  }
}
