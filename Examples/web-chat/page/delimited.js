// Frames: each message follows its length as a varint, as in Lifeline's binary messages over WebSocket. These may
// contain several frames, or parts of them.
import { concatenate, varint, WireError } from "./protobuf.js";

/** A payload with its length prefix. */
export function delimited(payload) {
  return concatenate([varint(BigInt(payload.length)), payload]);
}

/** Finds the frames in a stream that arrives in pieces. It holds only the received bytes of one frame, whatever length
 *  that declares. */
export class DelimitedDecoder {
  #maximumLength;
  /** The prefix so far. */
  #length = 0;
  #prefixSize = 0;
  /** The frame so far, with room to grow; null while its prefix is read. */
  #body = null;
  #received = 0;
  #error = null;

  /** `maximumLength` is that of a payload, in bytes. */
  constructor(maximumLength) {
    this.#maximumLength = maximumLength;
  }

  /** Whether the stream may end here. */
  get isBetweenFrames() {
    return this.#prefixSize === 0;
  }

  /**
   * Takes a piece, and passes the payload of each frame that it completes to `receive`. A payload may be a part of the
   * piece. Throws `WireError`, now and from then on, if the bytes are malformed.
   */
  push(piece, receive) {
    if (this.#error) throw this.#error;
    let position = 0;
    for (;;) {
      if (this.#body === null) {
        position = this.#readPrefix(piece, position);
        if (this.#body === null) return;
      }
      const missing = this.#length - this.#received;
      const part = piece.subarray(position, position + missing);
      position += part.length;
      if (part.length === this.#length) {
        this.#frameEnded();
        receive(part);
      } else {
        this.#append(part);
        if (part.length < missing) return;
        const payload = this.#body.subarray(0, this.#length);
        this.#frameEnded();
        receive(payload);
      }
    }
  }

  /** Reads the prefix, or the available part of it. Returns the position after it. */
  #readPrefix(piece, position) {
    while (position < piece.length) {
      const byte = piece[position++];
      // The fifth byte has the last four of 32 bits.
      if (this.#prefixSize === 4 && byte > 0x0f) throw this.#fail("its length is malformed");
      this.#length += (byte & 0x7f) * 2 ** (7 * this.#prefixSize);
      this.#prefixSize += 1;
      if (byte < 0x80) {
        if (this.#length > this.#maximumLength) throw this.#fail("it is too large");
        this.#body = new Uint8Array(0);
        break;
      }
    }
    return position;
  }

  /** The room doubles, so it is at most twice the received bytes, and each byte is copied once or twice. */
  #append(part) {
    const needed = this.#received + part.length;
    if (needed > this.#body.length) {
      const larger = new Uint8Array(Math.min(this.#length, Math.max(needed, 2 * this.#body.length)));
      larger.set(this.#body.subarray(0, this.#received));
      this.#body = larger;
    }
    this.#body.set(part, this.#received);
    this.#received = needed;
  }

  #frameEnded() {
    this.#body = null;
    this.#length = this.#prefixSize = this.#received = 0;
  }

  #fail(reason) {
    return (this.#error = new WireError(reason));
  }
}
