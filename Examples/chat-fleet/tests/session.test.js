// Whole sessions over connections that are cut at any byte, with fake sockets and time.
import assert from "node:assert/strict";
import test from "node:test";
import { Session, SessionError } from "../page/lifeline-session.js";
import { FakeServer, FakeWorld, Note, seededRandom } from "./support.js";

const numbers = (count) => Array.from({ length: count }, (_, index) => index);
const times = { firstDelay: 5, maximumDelay: 20 };

function makeWorld(seed) {
  const random = seededRandom(seed);
  const server = new FakeServer(random);
  return { random, server, world: new FakeWorld(random, (socket, url) => server.accept(socket, url)) };
}

for (let seed = 1; seed <= 25; seed += 1) {
  test(`nothing is lost, doubled or reordered by cuts (seed ${seed})`, async () => {
    const { random, server, world } = makeWorld(seed);
    // The last connections are not cut, so that the test ends.
    server.budget = () => server.connectionCount < 40 ? Math.floor(random() * 4_000) : Infinity;
    server.terms = { ...server.terms, windowFrames: 1 + Math.floor(random() * 40) };
    const count = 300;
    const heard = [];
    let lostCount = 0;
    const session = new Session(["ws://a", "ws://b"], {
      world, times,
      onLost: () => { lostCount += 1; },
      pushes: { "s/Said": {
        type: Note,
        // Some handlers take longer.
        take: ({ number }) => {
          heard.push(number);
          if (random() < 0.3) return new Promise((resolve) => { world.setTimeout(resolve, random() * 60); });
        },
      } },
    });
    const text = (index) => "x".repeat(index % 200);
    const sent = numbers(count).map((number) => session.push("s/Say", Note, { number, text: text(number) }));
    const answers = numbers(count).map((number) =>
      session.call("s/Ask", Note, { number, text: text(number) }, Note, { timeout: Infinity }));
    // The server's first message can arrive only when there is a session.
    await world.run(() => server.sessions.size === 1);
    for (const number of numbers(count)) server.push("s/Said", Note.encode({ number, text: text(number) }));
    await world.run(() => heard.length >= count && server.notes.length >= count && server.asked.length >= count);
    const all = Promise.all([...sent, ...answers]);
    let isDone = false;
    all.finally(() => { isDone = true; });
    await world.run(() => isDone);
    await all;
    assert.deepEqual(heard, numbers(count));
    assert.deepEqual(server.notes, numbers(count));
    assert.deepEqual(server.asked, numbers(count));
    assert.deepEqual((await Promise.all(answers)).map(({ number }) => number), numbers(count));
    assert.ok(server.resumedCount > 5, `${server.resumedCount}`);
    assert.deepEqual([server.sessions.size, lostCount, server.goodbyes], [1, 0, []]);
    session.close();
  });
}

test("credit lets a megabyte through, however slow its handler is", async () => {
  const { server, world } = makeWorld(1);
  const heard = [];
  const session = new Session(["ws://a"], {
    world,
    pushes: { "s/Said": {
      type: Note,
      take: ({ number }) => {
        heard.push(number);
        return new Promise((resolve) => { world.setTimeout(resolve, 5); });
      },
    } },
  });
  await world.run(() => session.state === "open");
  for (const number of numbers(100)) server.push("s/Said", Note.encode({ number, text: "x".repeat(10_000) }));
  await world.run(() => heard.length === 100);
  assert.deepEqual(heard, numbers(100));
});

for (let seed = 1; seed <= 10; seed += 1) {
  test(`a lost session tells what is in doubt, and all else is handled once (seed ${seed})`, async () => {
    const { random, server, world } = makeWorld(seed);
    server.budget = () => server.connectionCount < 12 ? Math.floor(random() * 3_000) : Infinity;
    const inDoubt = [];
    const session = new Session(["ws://a"], { world, times, onLost: (lost) => inDoubt.push(...lost.inDoubt) });
    const count = 200;
    const failures = [];
    let settledCount = 0;
    for (const number of numbers(count)) {
      session.push("s/Say", Note, { number })
        .catch((error) => failures.push([number, error.code]))
        .finally(() => { settledCount += 1; });
    }
    for (const handled of [20, 60, 120]) {
      await world.run(() => server.notes.length >= handled || settledCount === count);
      server.forgetSessions();
    }
    await world.run(() => settledCount === count);
    assert.deepEqual(inDoubt.map(({ payload }) => Note.decode(payload).number), failures.map(([number]) => number));
    assert.ok(failures.every(([, code]) => code === "sessionLost"));
    const failed = new Set(failures.map(([number]) => number));
    // Messages in doubt may have been handled; none is doubled or reordered.
    const processed = numbers(count).filter((number) => !failed.has(number));
    assert.deepEqual(server.notes.filter((number) => !failed.has(number)), processed);
    assert.ok(server.notes.every((number, index) => index === 0 || server.notes[index - 1] < number));
  });
}

test("a session tells what happens to its connections", async () => {
  const { server, world } = makeWorld(3);
  let isUp = false;
  const told = [];
  const accept = world.accept;
  world.accept = (socket, url) => isUp && url === "ws://b/" ? accept(socket, url) : null;
  const session = new Session(["ws://a", "ws://b"], {
    world, times: { firstDelay: 10, jitter: 0 }, name: "ada", metadata: () => ({ token: "x" }),
    onState: ({ state, url, delay }) => told.push([state, url ?? delay].join(" ").trim()),
    onOpened: ({ resumed, url }) => told.push(`resumed ${resumed} ${url}`),
  });
  await world.run(() => told.length === 4);
  isUp = true;
  await world.run(() => session.state === "open");
  assert.deepEqual(told, [
    "connecting ws://a/", "waiting 10", "connecting ws://b/", "waiting 20", "connecting ws://a/", "waiting 40",
    "connecting ws://b/", "open", "resumed false ws://b/",
  ]);
  session.close();
  assert.equal(told.at(-1), "closed");
  assert.equal(server.sessions.size, 1);
});

test("calls time out, are cancelled by their signals, and fail with their status", async () => {
  const { world } = makeWorld(4);
  world.accept = () => null;
  const session = new Session(["ws://a"], { world, times });
  const controller = new AbortController();
  const ask = (options) => session.call("s/Ask", Note, {}, Note, options).catch((error) => error);
  const [timed, cancelled] = [ask({ timeout: 100 }), ask({ signal: controller.signal })];
  controller.abort();
  const early = await ask({ signal: controller.signal });
  assert.deepEqual([(await cancelled).code, early.code], ["cancelled", "cancelled"]);
  let error;
  timed.then((value) => { error = value; });
  await world.run(() => error);
  assert.deepEqual([error.code, error instanceof SessionError, Math.floor(world.time)], ["timedOut", true, 100]);
});

test("a handler that fails and a message that cannot be read are told, and count as processed", async () => {
  const { server, world } = makeWorld(5);
  const problems = [], heard = [];
  const session = new Session(["ws://a"], {
    world,
    onProblem: (error) => problems.push(error.message),
    pushes: { "s/Said": { type: Note, take: ({ number }) => {
      heard.push(number);
      if (number === 1) throw new Error("one");
      if (number === 2) return Promise.reject(new Error("two"));
    } } },
  });
  await world.run(() => session.state === "open");
  const [one, two, three] = [1, 2, 3].map((number) => Note.encode({ number }));
  for (const payload of [one, two, Uint8Array.of(0x0a, 5), three]) server.push("s/Said", payload);
  const [fake] = server.sessions.values();
  await world.run(() => fake.processed === 5);
  assert.deepEqual(heard, [1, 2, 3]);
  assert.deepEqual(problems, ["one", "two", "it ends inside a field"]);
});

test("an old connection has no say any more", async () => {
  const { server, world } = makeWorld(8);
  const sockets = [];
  const accept = world.accept;
  world.accept = (socket, url) => accept(sockets[sockets.push(socket) - 1], url);
  const session = new Session(["ws://a"], { world, times });
  await world.run(() => session.state === "open");
  sockets[0].onmessage({ data: "a text" });
  await world.run(() => sockets.length === 2 && session.state === "open");
  sockets[0].onmessage({ data: "a text" });
  sockets[0].onclose({});
  assert.equal(session.state, "open");
  assert.equal(server.connectionCount, 2);
});

test("a server that does not read, and asks for answers, is left", async () => {
  const { server, world } = makeWorld(6);
  const states = [];
  const session = new Session(["ws://a"], { world, onState: ({ state }) => states.push(state) });
  let socket;
  const accept = world.accept;
  world.accept = (made) => accept(socket = made);
  await world.run(() => session.state === "open");
  socket.bufferedAmount = 33 << 20;
  server.push("s/Said", Note.encode({}));
  await world.run(() => session.state === "waiting");
  assert.equal(server.connectionCount, 1);
});

test("addresses that are none are refused", () => {
  const { world } = makeWorld(7);
  assert.throws(() => new Session(["nonsense"], { world }), TypeError);
  assert.throws(() => new Session([], { world }), RangeError);
});
