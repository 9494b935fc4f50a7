// A WebSocket that reconnects when it is lost, with delimited messages.
import { delimited, DelimitedDecoder } from "./delimited.js";
import { WireError } from "./protobuf.js";

/** The longest message, in bytes: the room's limit. */
export const MAXIMUM_MESSAGE_LENGTH = 64 << 10;

/** How many bytes may wait in the browser to be sent: four of the longest messages. */
const MAXIMUM_WAITING = 4 * MAXIMUM_MESSAGE_LENGTH;

/** This page's close code for malformed bytes. (Browsers let pages use 1000 and 3000 to 4999.) */
const UNREADABLE = 4000;

/** Times are in milliseconds. They, and the number of attempts, are the defaults of Lifeline's own client. */
const defaults = {
  attempts: 4,
  firstDelay: 1_000,
  jitter: 0.2,
  connectTimeout: 10_000,
  stabilityPeriod: 10_000,
};

/**
 * Connects at once. When the connection is lost it tries again, after 1, 2, 4 and 8 s, each ±20 %, so that not all
 * pages reconnect to a restarted server at once. Then it gives up, until `reconnect()` or until the browser is online
 * again. The count of attempts is reset after 10 s of connection.
 *
 * It calls
 * - `onState(state, detail)` when the state changes: "connecting", "open", "waiting" (`detail` is the delay until the next
 *   attempt), "gaveUp" or "closed", which is the last one;
 * - `onMessage(message)` for each message;
 * - `onError(text)` with a text for the user: a message was malformed, or sent messages may be lost.
 */
export class ChatConnection {
  state = null;
  #url;
  #type;
  #handlers;
  #options;
  #socket = null;
  #decoder = null;
  #attemptsMade = 0;
  #timer = null;
  #cameOnline = () => {
    if (this.state === "waiting" || this.state === "gaveUp") this.reconnect();
  };

  /** Throws `SyntaxError` if the URL is not one of a WebSocket. */
  constructor(url, type, handlers, options = {}) {
    this.#url = url;
    this.#type = type;
    this.#handlers = handlers;
    this.#options = { ...defaults, ...options };
    this.#connect();
    addEventListener("online", this.#cameOnline);
  }

  /** Tries at once, with a fresh count of attempts. */
  reconnect() {
    if (this.state !== "waiting" && this.state !== "gaveUp") return;
    this.#attemptsMade = 0;
    this.#connect();
  }

  /** Sends a message. Returns the reason, in words, if it cannot be sent now. */
  send(message) {
    if (this.state !== "open") return "There is no connection.";
    const payload = this.#type.encode(message);
    if (payload.length > MAXIMUM_MESSAGE_LENGTH) return "The message is too long.";
    if (this.#socket.bufferedAmount > MAXIMUM_WAITING) return "The connection is too slow: wait a moment.";
    this.#socket.send(delimited(payload));
    return null;
  }

  /** Closes, and stays closed. */
  close() {
    removeEventListener("online", this.#cameOnline);
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
    this.#enter("closed");
  }

  #connect() {
    clearTimeout(this.#timer);
    const socket = new WebSocket(this.#url);
    socket.binaryType = "arraybuffer";
    // A socket that was given up may still cause events.
    const whileCurrent = (handle) => (event) => { if (socket === this.#socket) handle(event); };
    socket.onopen = whileCurrent(() => this.#opened());
    socket.onmessage = whileCurrent((event) => this.#received(event.data));
    socket.onclose = whileCurrent((event) => this.#lost(event));
    this.#socket = socket;
    this.#decoder = new DelimitedDecoder(MAXIMUM_MESSAGE_LENGTH);
    // A browser by itself waits for minutes.
    this.#timer = setTimeout(() => this.#giveSocketUp(), this.#options.connectTimeout);
    this.#enter("connecting");
  }

  #opened() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => { this.#attemptsMade = 0; }, this.#options.stabilityPeriod);
    this.#enter("open");
  }

  #received(data) {
    try {
      if (typeof data === "string") throw new WireError("it is text");
      this.#decoder.push(new Uint8Array(data), (payload) => {
        this.#handlers.onMessage(this.#type.decode(payload));
      });
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#handlers.onError(`The server sent what is no message: ${error.message}.`);
      this.#giveSocketUp(UNREADABLE, "unreadable message");
    }
  }

  #lost({ code }) {
    if (this.#socket.bufferedAmount > 0) {
      this.#handlers.onError("The connection was lost. What you said last may not have arrived.");
    } else if (!this.#decoder.isBetweenFrames) {
      this.#handlers.onError("The connection was lost in the middle of a message.");
    } else if (code === 1009) {
      this.#handlers.onError("The server found a message too long.");
    }
    this.#giveSocketUp();
  }

  #giveSocketUp(...closeArguments) {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket.close(...closeArguments);
    const { attempts, firstDelay, jitter } = this.#options;
    if (this.#attemptsMade === attempts) return this.#enter("gaveUp");
    const delay = firstDelay * 2 ** this.#attemptsMade * (1 + jitter * (2 * Math.random() - 1));
    this.#attemptsMade += 1;
    this.#timer = setTimeout(() => this.#connect(), delay);
    this.#enter("waiting", delay);
  }

  #enter(state, detail) {
    this.state = state;
    this.#handlers.onState(state, detail);
  }
}
