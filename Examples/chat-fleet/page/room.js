// A room of the chat: its messages, once and in order, and the messages to send. It does not depend on the page.
import { groupMark, JoinReply, JoinRequest, Message, SayReply, SayRequest } from "./chat-messages.js";
import { Session } from "./lifeline-session.js";

/** How many keys are remembered: more than the messages that the servers keep for a room. */
const MAXIMUM_KEYS = 2_000;

/** How long to wait after a server's failure before trying again, in milliseconds. */
const RETRY_DELAY = 500;

/** There are other servers, and a person waits, so the page tries again sooner than a session by default. */
const TIMES = { maximumDelay: 4_000, stableAfter: 2_000 };

/** Codes of google.rpc.Code that mean: try again. */
const DEADLINE_EXCEEDED = 4, RESOURCE_EXHAUSTED = 8, UNAVAILABLE = 14;

/**
 * Takes part in a room, at any server that it reaches.
 *
 * The session keeps messages across lost connections. When a session is lost because its server is gone, this joins the
 * room again after the last received message, and sends unanswered messages again. The room may then have such a
 * message twice, with the same key, and the second one is dropped here.
 *
 * It calls
 * - `onState({ state, url, delay, message })` like the session;
 * - `onMessage(message, { isOwn })` for each message of the room;
 * - `onGap()` when messages are lost: the room's history did not reach back to the last received one;
 * - `onRefused(key, words)` when the server refuses a message of this page; with null as key, when it does not admit
 *   the page to the room.
 */
export class ChatRoom {
  #name;
  #group;
  #room;
  #handlers;
  #session;
  #setTimeout;
  /** The messages to send, in order. The first one may be under way. */
  #outbox = [];
  #isSpeaking = false;
  /** Whether the current session is a member of the group. */
  #isMember = false;
  /** Counts sessions, to distinguish answers to an earlier one. */
  #sessionCount = 0;
  /** The position of the last received message; null before the first. */
  #position = null;
  #isGapTold = false;
  #keys = new Set();
  #ownKeys = new Set();

  /** `options` are for the session. Throws `TypeError` for a malformed URL. */
  constructor(urls, room, name, handlers, options = {}) {
    this.#setTimeout = options.world?.setTimeout ?? ((action, delay) => setTimeout(action, delay));
    [this.#room, this.#group, this.#name, this.#handlers] = [room, `rooms/${room}`, name, handlers];
    this.#session = new Session(urls, {
      times: TIMES, ...options,
      pushes: { "example.chat.v1.Chat/Said": { type: Message, take: (...push) => this.#hear(...push) } },
      onState: (state) => handlers.onState(state),
      // If this is called while the session is being made, there is no session yet, and nothing is open.
      onOpened: ({ resumed }) => { if (!resumed) this.#beginSession(); },
    });
  }

  /** Sends a message as soon as possible. Returns its key. */
  say(text) {
    const key = crypto.getRandomValues(new BigUint64Array(2)).join("-");
    this.#ownKeys.add(key);
    this.#outbox.push({ room: this.#room, key, from: this.#name, text });
    this.#speak();
    return key;
  }

  /** Tries to connect at once. */
  reconnect() {
    this.#session.reconnect();
  }

  close() {
    this.#session.close();
  }

  // Members

  #beginSession() {
    this.#sessionCount += 1;
    this.#isMember = false;
    this.#join(this.#sessionCount);
  }

  /** Joins after the last received message, or with the whole history. */
  async #join(session) {
    while (session === this.#sessionCount && this.#session.state !== "closed") {
      const position = this.#position;
      const start = position ? { after: position } : { earliest: true };
      try {
        const reply = await this.#session.call(
          "lifeline.fleet.v1.Groups/Join", JoinRequest, { group: this.#group, ...start }, JoinReply,
        );
        if (session !== this.#sessionCount) return;
        if (position && !reply.recovered) this.#tellGap();
        // Messages may arrive before the answer.
        if (this.#position === position) this.#position = reply.position;
        this.#isMember = true;
        this.#speak();
        return;
      } catch (error) {
        // The next session joins by itself.
        if (error.code === "sessionLost" || error.code === "closed") return;
        if (isRefusal(error)) return this.#handlers.onRefused(null, error.message);
        await this.#pause();
      }
    }
  }

  #hear(message, metadata) {
    const mark = groupMark(metadata);
    if (mark?.group !== this.#group) return;
    this.#position = mark.position;
    if (mark.followsGap) this.#tellGap();
    this.#isGapTold = false;
    if (this.#keys.has(message.key)) return;
    this.#keys.add(message.key);
    // The oldest one.
    if (this.#keys.size > MAXIMUM_KEYS) this.#keys.delete(this.#keys.values().next().value);
    this.#handlers.onMessage(message, { isOwn: this.#ownKeys.delete(message.key) });
  }

  /** The answer to joining and the next message may both report the same gap. */
  #tellGap() {
    if (!this.#isGapTold) this.#handlers.onGap();
    this.#isGapTold = true;
  }

  // Messages

  /** Sends one message after the other: each waits for the answer to the one before, so that the order stays. */
  async #speak() {
    if (this.#isSpeaking) return;
    this.#isSpeaking = true;
    while (this.#outbox.length > 0 && this.#isMember) {
      const request = this.#outbox[0];
      try {
        await this.#session.call("example.chat.v1.Chat/Say", SayRequest, request, SayReply);
        this.#outbox.shift();
      } catch (error) {
        if (error.code === "closed") break;
        if (isRefusal(error)) {
          this.#outbox.shift();
          this.#ownKeys.delete(request.key);
          this.#handlers.onRefused(request.key, error.message);
        } else if (error.code !== "sessionLost") {
          await this.#pause();
        }
        // Otherwise it continues in the next session once that is a member, or at once if it already is.
      }
    }
    this.#isSpeaking = false;
  }

  #pause() {
    return new Promise((resolve) => { this.#setTimeout(resolve, RETRY_DELAY); });
  }
}

/** Whether trying again is useless. */
function isRefusal({ code, status }) {
  if (code === "status") return ![DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE].includes(status);
  return code === "tooLarge";
}
