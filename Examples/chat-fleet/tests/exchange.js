// Exchanges messages with a server that has the methods of interop.Peer (Tests/InteropTests/Peers/README.md), over
// connections that are cut at random bytes, and counts the received messages.
//
//     node exchange.js URL [--count N] [--cuts N] [--seed S]
//
// URL is ws://… or tcp://…; over the latter it makes no cuts itself. Exit code 0: nothing was lost, doubled or
// reordered, and all the cuts were made.
import { parseArgs } from "node:util";
import { MessageType, Session } from "../page/lifeline-session.js";
import { NodeSocket, TCPSocket } from "./node-socket.js";
import { seededRandom } from "./support.js";

const { positionals: [url], values } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: "string", default: "2000" }, cuts: { type: "string", default: "50" },
    seed: { type: "string", default: "1" },
  },
});
const isTCP = url.startsWith("tcp:");
const [count, seed] = [values.count, values.seed].map(Number);
const cutCount = isTCP ? 0 : Number(values.cuts);

/** The needed fields of sample.chat.v1.ChatMessage. */
const ChatMessage = new MessageType({ id: [1, "string"], text: [4, "string"] });
const random = seededRandom(seed);
const seen = { cuts: 0, connections: 0, resumed: 0, lost: 0, news: [], echoes: [] };

/** Most cuts come soon, within an opening or a frame; others later. */
function makeSocket(address) {
  seen.connections += 1;
  if (isTCP) return new TCPSocket(address);
  if (seen.cuts >= cutCount) return new NodeSocket(address);
  seen.cuts += 1;
  return new NodeSocket(address, 100 + Math.floor(random() ** 2 * 60_000));
}

let isDone = false;
let whenAllNewsCame;
const allNews = new Promise((resolve) => { whenAllNewsCame = resolve; });
const session = new Session([url], {
  world: { makeSocket },
  times: { firstDelay: 1, maximumDelay: 5 },
  onOpened: ({ resumed }) => { seen.resumed += resumed ? 1 : 0; },
  onLost: ({ reason }) => {
    if (isDone) return;
    console.error(`exchange: a session is lost: ${reason}`);
    seen.lost += 1;
  },
  pushes: { "interop.Peer/News": {
    type: ChatMessage,
    take: ({ id }) => {
      seen.news.push(Number(id));
      if (seen.news.length === count) whenAllNewsCame();
      // Some take longer than a connection lasts.
      if (random() < 0.02) return new Promise((resolve) => { setTimeout(resolve, random() * 20); });
    },
  } },
});

const text = (number) => "Grüezi ".repeat(number % 50);
const ask = (method, id, words = "") =>
  session.call(`interop.Peer/${method}`, ChatMessage, { id: `${id}`, text: words }, ChatMessage, { timeout: 300_000 });

/** Sends a number of requests at a time. */
async function echo() {
  let next = 0;
  await Promise.all(Array.from({ length: 16 }, async () => {
    while (next < count) {
      const number = next++;
      const reply = await ask("Echo", number, text(number));
      if (reply.text === text(number)) seen.echoes.push(Number(reply.id));
    }
  }));
}

async function note() {
  for (let number = 0; number < count; number += 50) {
    const some = Array.from({ length: Math.min(50, count - number) }, (_, index) => number + index);
    await Promise.all(some.map((id) =>
      session.push("interop.Peer/Note", ChatMessage, { id: `${id}`, text: text(id) })));
  }
}

/** Continues until all cuts are made, also after everything else is finished. */
async function idle() {
  for (let number = 0; seen.cuts < cutCount; number += 1) await ask("TimeLeft", number, text(49));
}

try {
  await Promise.all([ask("Start", count), echo(), note(), allNews]);
  seen.cutsAmid = seen.cuts;
  await idle();
} catch (error) {
  console.error(`exchange: ${error.message}`, seen);
  process.exit(1);
}
isDone = true;
session.close();
const inOrder = (found) => found.length === count && found.every((number, index) => number === index);
// Replies may overtake one another.
seen.echoes.sort((one, other) => one - other);
const isRight = inOrder(seen.news) && inOrder(seen.echoes) && seen.lost === 0;
console.log(
  `${seen.news.length} pushes and ${seen.echoes.length} replies over ${seen.connections} connections, `
  + `${seen.resumed} of them resumed, ${seen.cutsAmid} cut amid these: `
  + (isRight ? "none lost, doubled or reordered" : "WRONG"),
);
process.exit(isRight ? 0 : 1);
