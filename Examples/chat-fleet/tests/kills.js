// Starts three servers and a Redis. Two rooms exchange messages over them, while one server after the other is killed
// with SIGKILL and started again. Counts the messages that both receive.
//
//     node kills.js CHAT_FLEET_SERVER [--kills N] [--messages N]
//
// Exit code 0: both have all messages once, in the same order, with each sender's messages in order.
import { spawn } from "node:child_process";
import { webcrypto } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ChatRoom } from "../page/room.js";
import { NodeSocket } from "./node-socket.js";

// Node 18 has no such global.
globalThis.crypto ??= webcrypto;

const { positionals: [program], values } = parseArgs({
  allowPositionals: true,
  options: { kills: { type: "string", default: "30" }, messages: { type: "string", default: "3000" } },
});
const [killCount, messageCount] = [Number(values.kills), Number(values.messages)];
/** The pause between two messages, so that the history is long enough for every change of servers. */
const PAUSE = 35;

const folder = mkdtempSync(join(tmpdir(), "chat-fleet-"));
const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

/** Starts a process, and resolves when it has written that it is ready. */
function start(command, options, ready) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, options, { stdio: ["ignore", "pipe", "pipe"] });
    children.add(child);
    let output = "";
    const take = (data) => {
      output += data;
      if (output.includes(ready)) resolve({ child, output });
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", reject);
    child.on("exit", () => {
      children.delete(child);
      reject(new Error(`${command} has ended: ${output}`));
    });
  });
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/** A member of the room, and the messages that it has seen. */
class Talker {
  shown = [];
  gapCount = 0;
  state = null;
  url = null;

  constructor(name, urls) {
    this.name = name;
    this.room = new ChatRoom(urls, "lobby", name, {
      onState: ({ state, url }) => {
        this.state = state;
        this.url = url ?? this.url;
      },
      onMessage: ({ text }) => this.shown.push(text),
      onGap: () => { this.gapCount += 1; },
      onRefused: (key, words) => this.shown.push(`refused: ${words}`),
    }, { world: { makeSocket: (url) => new NodeSocket(url) } });
  }

  async talk() {
    for (let number = 0; number < messageCount; number += 1) {
      this.room.say(`${this.name} ${number}`);
      await pause(PAUSE);
    }
  }

  get isComplete() {
    return this.shown.length >= 2 * messageCount;
  }

  /** Whether all messages of a sender arrived once and in order. */
  heardAll(name) {
    const heard = this.shown.filter((text) => text.startsWith(`${name} `));
    return heard.length === messageCount && heard.every((text, number) => text === `${name} ${number}`);
  }
}

const redisPort = await freePort();
await start(
  "redis-server", ["--bind", "127.0.0.1", "--port", `${redisPort}`, "--save", "", "--dir", folder], "Ready to accept",
);
const serve = (url) => start(program, ["--on", url, "--redis", `redis://127.0.0.1:${redisPort}`], "listening on ");
const servers = await Promise.all([1, 2, 3].map(() => serve("ws://127.0.0.1:0/chat")));
const urls = servers.map(({ output }) => output.match(/ws:\S+/)[0]);
const ada = new Talker("Ada", urls), grace = new Talker("Grace", [urls[1], urls[2], urls[0]]);
ada.talk();
grace.talk();

/** How long it took until the session was open again, for each kill. */
const durations = [];
for (let number = 0; number < killCount; number += 1) {
  // The delays of pages grow while connections last for less than 2 s.
  await pause(2_100 + Math.random() * 1_000);
  const talker = number % 2 === 0 ? ada : grace;
  while (talker.state !== "open") await pause(2);
  const index = urls.indexOf(talker.url);
  const began = performance.now();
  servers[index].child.kill("SIGKILL");
  while (talker.state === "open") await pause(2);
  while (talker.state !== "open") await pause(2);
  durations.push(performance.now() - began);
  servers[index] = await serve(urls[index]);
}
const deadline = performance.now() + 60_000 + messageCount * PAUSE;
while (!(ada.isComplete && grace.isComplete) && performance.now() < deadline) await pause(10);
// Duplicates would arrive now.
await pause(500);

durations.sort((one, other) => one - other);
const seconds = (index) => (durations[index] / 1_000).toFixed(2);
const isRight = [ada, grace].every((talker) => talker.heardAll("Ada") && talker.heardAll("Grace")
  && talker.shown.length === 2 * messageCount && talker.gapCount === 0)
  && ada.shown.every((text, index) => text === grace.shown[index]);
console.log(
  `${killCount} kills, half of them over within ${seconds(durations.length >> 1)} s, all within `
  + `${seconds(durations.length - 1)} s; ${ada.shown.length} and ${grace.shown.length} messages: `
  + (isRight ? "none lost, doubled or reordered" : `WRONG (${ada.gapCount} and ${grace.gapCount} gaps)`),
);
process.exit(isRight ? 0 : 1);
