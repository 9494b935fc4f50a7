// A room whose servers die, lose their history, and refuse.
import assert from "node:assert/strict";
import test from "node:test";
import { groupMark, JoinReply, JoinRequest, Message, SayRequest } from "../page/chat-messages.js";
import { ChatRoom } from "../page/room.js";
import { FakeServer, FakeWorld, seededRandom } from "./support.js";

/** Servers with one room, which they share. To kill them, `forgetSessions` and cut the sockets. */
class FakeRooms extends FakeServer {
  epoch = 0x5e3a1;
  log = [];
  /** The number of messages that the history keeps. */
  kept = Infinity;
  joins = [];
  /** The reactions to the next messages: "answer", "die" before the answer, or a status. */
  outcomes = [];

  /** The status of the next attempts to join; 0: success. */
  joinStatuses = [];

  answer(session, method, payload) {
    const status = method.endsWith("/Join") ? this.joinStatuses.shift() ?? 0 : 0;
    if (status !== 0) return { status, message: "not you" };
    return method === "lifeline.fleet.v1.Groups/Join" ? this.#join(session, payload) : this.#say(payload);
  }

  #join(session, payload) {
    const { after, earliest } = JoinRequest.decode(payload);
    const oldest = Math.max(this.log.length - this.kept, 0);
    const wanted = earliest ? oldest : Number(after.offset);
    const recovered = earliest || (after.epoch === BigInt(this.epoch) && wanted >= oldest);
    const first = recovered ? wanted : this.log.length;
    this.joins.push(earliest ? "earliest" : Number(after.offset));
    session.isMember = true;
    session.nextFlags = recovered ? "" : "+gap";
    for (let offset = first; offset < this.log.length; offset += 1) this.#tell(session, offset);
    return { payload: JoinReply.encode({ position: { epoch: BigInt(this.epoch), offset: BigInt(first) }, recovered }) };
  }

  #say(payload) {
    const { key, from, text } = SayRequest.decode(payload);
    const outcome = this.outcomes.shift() ?? "answer";
    if (typeof outcome === "number") return { status: outcome, message: "no" };
    this.log.push({ key, from, text });
    for (const session of this.sessions.values()) if (session.isMember) this.#tell(session, this.log.length - 1);
    if (outcome === "answer") return {};
    this.die();
    return null;
  }

  #tell(session, offset) {
    const place = `${this.epoch.toString(16)}-${offset + 1}${session.nextFlags}`;
    session.nextFlags = "";
    session.push("example.chat.v1.Chat/Said", Message.encode(this.log[offset]), new Map([
      ["lifeline-group", `${place} rooms/lobby`],
    ]));
  }

  /** All servers are killed, and others take their places. */
  die() {
    const connections = [...this.sessions.values()].map(({ connection }) => connection);
    this.forgetSessions();
    for (const { socket } of connections) socket.cut();
  }
}

function makeRoom(seed = 1) {
  const random = seededRandom(seed);
  const server = new FakeRooms(random);
  const world = new FakeWorld(random, (socket, url) => server.accept(socket, url));
  const enter = (name) => {
    const shown = [];
    const room = new ChatRoom(["ws://a", "ws://b"], "lobby", name, {
      onState: () => {},
      onMessage: ({ text }, { isOwn }) => shown.push(isOwn ? `own ${text}` : text),
      onGap: () => shown.push("GAP"),
      onRefused: (key, words) => shown.push(`refused: ${words}`),
    }, { world });
    return { room, shown };
  };
  return { server, world, enter };
}

test("what one says, all see in one order", async () => {
  const { world, enter } = makeRoom();
  const [ada, grace] = [enter("Ada"), enter("Grace")];
  for (const number of [1, 2, 3]) {
    ada.room.say(`a${number}`);
    grace.room.say(`g${number}`);
  }
  await world.run(() => ada.shown.length === 6 && grace.shown.length === 6);
  const plain = (shown) => shown.map((text) => text.replace("own ", ""));
  assert.deepEqual(plain(ada.shown), plain(grace.shown));
  assert.deepEqual(ada.shown.filter((text) => text.startsWith("own")), ["own a1", "own a2", "own a3"]);
  // Now that it is a member.
  for (const number of [4, 5, 6]) ada.room.say(`a${number}`);
  await world.run(() => grace.shown.length === 9);
  assert.deepEqual(grace.shown.slice(6), ["a4", "a5", "a6"]);
});

test("a session that goes on is a member still, and one that begins goes on where the last one was", async () => {
  const { server, world, enter } = makeRoom();
  const ada = enter("Ada");
  await world.run(() => server.joins.length === 1);
  ada.room.say("1");
  await world.run(() => ada.shown.length === 1);
  for (const { connection } of server.sessions.values()) connection.socket.cut();
  ada.room.say("2");
  await world.run(() => ada.shown.length === 2);
  assert.equal(server.resumedCount, 1);
  assert.deepEqual(server.joins, ["earliest"]);
  server.die();
  await world.run(() => server.joins.length === 2);
  assert.deepEqual(server.joins, ["earliest", 2]);
});

test("a page goes on behind the place at which it has joined, also if nothing came since", async () => {
  const { server, world, enter } = makeRoom();
  server.log.push({ key: "k", from: "x", text: "before" });
  server.kept = 0;
  enter("Ada");
  await world.run(() => server.joins.length === 1);
  let isLater = false;
  world.setTimeout(() => { isLater = true; }, 100);
  await world.run(() => isLater);
  server.die();
  await world.run(() => server.joins.length === 2);
  assert.deepEqual(server.joins, ["earliest", 1]);
});

test("a page that comes late sees the history", async () => {
  const { world, enter } = makeRoom();
  const ada = enter("Ada");
  for (const text of ["1", "2", "3"]) ada.room.say(text);
  await world.run(() => ada.shown.length === 3);
  ada.room.close();
  const again = enter("Ada");
  await world.run(() => again.shown.length === 3);
  assert.deepEqual(again.shown, ["1", "2", "3"]);
});

for (let seed = 1; seed <= 20; seed += 1) {
  test(`servers that die lose, double and reorder nothing (seed ${seed})`, async () => {
    const { server, world, enter } = makeRoom(seed);
    const [ada, grace] = [enter("Ada"), enter("Grace")];
    const texts = Array.from({ length: 30 }, (_, index) => `${index}`);
    // Some die after the room has the message, but before they have answered.
    server.outcomes = Array.from({ length: 40 }, (_, index) => index % 7 === 3 ? "die" : "answer");
    for (const text of texts) ada.room.say(text);
    await world.run(() => grace.shown.length >= 10);
    server.die();
    await world.run(() => ada.shown.length >= 30 && grace.shown.length >= 30);
    assert.deepEqual(grace.shown, texts);
    assert.deepEqual(ada.shown, texts.map((text) => `own ${text}`));
    assert.ok(server.log.length > 30, "the room has some twice");
    assert.ok(server.joins.filter((start) => start > 0).length >= 4);
  });
}

test("what the history does not reach back to is told, once", async () => {
  const { server, world, enter } = makeRoom();
  const [ada, grace] = [enter("Ada"), enter("Grace")];
  ada.room.say("1");
  await world.run(() => grace.shown.length === 1);
  server.log.push(...Array.from({ length: 50 }, (_, index) => ({ key: `k${index}`, from: "x", text: "unseen" })));
  server.kept = 10;
  server.die();
  await world.run(() => grace.shown.length === 2);
  ada.room.say("2");
  await world.run(() => grace.shown.length === 3);
  assert.deepEqual(grace.shown, ["1", "GAP", "2"]);
});

test("a history that is lost is told", async () => {
  const { server, world, enter } = makeRoom();
  const ada = enter("Ada");
  ada.room.say("1");
  await world.run(() => ada.shown.length === 1);
  [server.epoch, server.log] = [0x5e3a2, []];
  server.die();
  ada.room.say("2");
  await world.run(() => ada.shown.length === 3);
  assert.deepEqual(ada.shown, ["own 1", "GAP", "own 2"]);
});

test("what a server refuses is told, and what it cannot do at the moment is tried again, in order", async () => {
  const { server, world, enter } = makeRoom();
  // INVALID_ARGUMENT; UNAVAILABLE twice.
  server.outcomes = [3, "answer", 14, 14];
  const ada = enter("Ada");
  for (const text of ["1", "2", "3", "4"]) ada.room.say(text);
  await world.run(() => ada.shown.length === 4);
  assert.deepEqual(ada.shown, ["refused: no", "own 2", "own 3", "own 4"]);
});

test("a room that cannot be joined at the moment is tried again, and one that lets nobody in is not", async () => {
  const { server, world, enter } = makeRoom();
  server.joinStatuses = [14, 14];
  const ada = enter("Ada");
  ada.room.say("1");
  await world.run(() => ada.shown.length === 1);
  // PERMISSION_DENIED
  server.joinStatuses = [7];
  const grace = enter("Grace");
  await world.run(() => grace.shown.length === 1);
  assert.deepEqual([ada.shown, grace.shown], [["own 1"], ["refused: not you"]]);
});

test("marks of groups are read, and nothing else is", () => {
  const mark = (value) => groupMark(new Map([["lifeline-group", value]]));
  assert.deepEqual(mark("5e3a1-17 rooms/7"), {
    group: "rooms/7", position: { epoch: 0x5e3a1n, offset: 17n }, followsGap: false,
  });
  assert.equal(mark("5e3a1-17+recovered+gap a b").followsGap, true);
  assert.equal(mark("5e3a1-17+recovered a b").group, "a b");
  for (const value of ["", "x", "5e3a1 rooms/7", "-17 a", "5e3a1-17", "123456789abcdef01-1 a", "1-x a"]) {
    assert.equal(mark(value), null, value);
  }
  assert.equal(groupMark(new Map()), null);
});
