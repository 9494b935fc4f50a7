// A WebSocket for Node, which has none before version 22: the parts of RFC 6455 that a session needs, for ws://. Unlike
// a real one, it can be cut after any number of bytes, and delivers bytes before their message is complete.
import { randomBytes } from "node:crypto";
import { connect } from "node:net";

const BINARY = 2, CLOSE = 8, PING = 9, PONG = 10;

export class NodeSocket {
  readyState = 0;
  #socket;
  #budget;
  #received = Buffer.alloc(0);
  /** How many bytes of a message's frame are missing. */
  #missing = 0;

  /** After `budget` bytes in both directions together, the connection is cut, wherever that is. */
  constructor(url, budget = Infinity) {
    const { hostname, port, pathname, host } = new URL(url);
    this.#budget = budget;
    this.#socket = connect({ host: hostname, port: Number(port) }, () => {
      this.#write([
        `GET ${pathname} HTTP/1.1`, `Host: ${host}`, "Upgrade: websocket", "Connection: Upgrade",
        `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`, "Sec-WebSocket-Version: 13", "", "",
      ].join("\r\n"));
    });
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (data) => this.#take(data));
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => this.#ended());
  }

  get bufferedAmount() {
    return this.#socket.writableLength;
  }

  send(bytes) {
    this.#writeFrame(BINARY, Buffer.from(bytes));
  }

  close() {
    if (this.readyState === 1) this.#writeFrame(CLOSE, Buffer.from([0x03, 0xe8]));
    this.readyState = 2;
    this.#socket.end();
  }

  #write(data) {
    const bytes = Buffer.from(data);
    this.#socket.write(bytes.subarray(0, Math.min(bytes.length, this.#budget)));
    this.#spend(bytes.length);
  }

  #writeFrame(opcode, payload) {
    const { length } = payload;
    const head = length < 126 ? Buffer.from([0x80 | opcode, 0x80 | length]) : Buffer.alloc(length < 65_536 ? 4 : 10);
    if (length >= 126) {
      [head[0], head[1]] = [0x80 | opcode, 0x80 | (length < 65_536 ? 126 : 127)];
      if (length < 65_536) head.writeUInt16BE(length, 2); else head.writeBigUInt64BE(BigInt(length), 2);
    }
    const mask = randomBytes(4);
    this.#write(Buffer.concat([head, mask, payload.map((byte, index) => byte ^ mask[index % 4])]));
  }

  /** Cuts the connection when the budget is used up. Earlier bytes are sent, and then the end. */
  #spend(count) {
    this.#budget -= count;
    if (this.#budget > 0) return;
    this.#socket.end(() => this.#socket.destroy());
    this.#ended();
  }

  #ended() {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.({ code: 1006 });
  }

  #take(data) {
    if (this.readyState > 1) return;
    const part = data.subarray(0, Math.min(data.length, this.#budget));
    this.#received = Buffer.concat([this.#received, part]);
    if (this.readyState === 0 && !this.#takeAnswer()) return this.#spend(data.length);
    while (this.readyState === 1 && this.#takeFrame());
    if (this.readyState === 1) this.#spend(data.length);
  }

  /** Returns whether the server's answer has arrived and accepts the client. */
  #takeAnswer() {
    const end = this.#received.indexOf("\r\n\r\n");
    if (end < 0) return false;
    if (!this.#received.toString("latin1", 0, end).startsWith("HTTP/1.1 101 ")) {
      this.#socket.destroy();
      return false;
    }
    this.#received = this.#received.subarray(end + 4);
    this.readyState = 1;
    this.onopen?.({});
    return true;
  }

  /** Takes the available bytes of a message's frame, or another complete frame. Returns whether there may be more. */
  #takeFrame() {
    const received = this.#received;
    if (this.#missing > 0) {
      const part = received.subarray(0, this.#missing);
      this.#received = received.subarray(part.length);
      this.#missing -= part.length;
      if (part.length > 0) this.onmessage?.({ data: Uint8Array.from(part).buffer });
      return part.length > 0;
    }
    if (received.length < 2) return false;
    const short = received[1] & 0x7f;
    const start = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (received.length < start) return false;
    const length = short < 126 ? short : short === 126 ? received.readUInt16BE(2) : Number(received.readBigUInt64BE(2));
    const opcode = received[0] & 0x0f;
    if (opcode < CLOSE) {
      // A message may have several frames. Their boundaries mean nothing here.
      this.#missing = length;
      this.#received = received.subarray(start);
      return true;
    }
    if (received.length < start + length) return false;
    this.#received = received.subarray(start + length);
    if (opcode === CLOSE) this.#socket.end();
    if (opcode === PING) this.#writeFrame(PONG, received.subarray(start, start + length));
    return true;
  }
}

/** A stream of bytes in place of a WebSocket: over TCP the session's frames are the same. */
export class TCPSocket {
  readyState = 0;
  #socket;

  /** `url` is tcp://HOST:PORT. */
  constructor(url) {
    const { hostname, port } = new URL(url);
    this.#socket = connect({ host: hostname, port: Number(port) }, () => {
      this.readyState = 1;
      this.onopen({});
    });
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (data) => {
      if (this.readyState === 1) this.onmessage({ data: Uint8Array.from(data).buffer });
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      this.readyState = 3;
      this.onclose({});
    });
  }

  get bufferedAmount() {
    return this.#socket.writableLength;
  }

  send(bytes) {
    this.#socket.write(bytes);
  }

  close() {
    this.readyState = 2;
    this.#socket.end();
  }
}
