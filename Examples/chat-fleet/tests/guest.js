// A client of a server of sessions, until that says goodbye for good: to see how it takes what the server does. It
// leaves the pushes of interop.Peer/Block waiting for ever.
//
//     node guest.js tcp://HOST:PORT
import { Session } from "../page/lifeline-session.js";
import { TCPSocket } from "./node-socket.js";

new Session([process.argv[2]], {
  world: { makeSocket: (url) => new TCPSocket(url) },
  times: { firstDelay: 10, maximumDelay: 50 },
  // They are no messages of any type.
  pushes: { "interop.Peer/Block": { type: { decode: (payload) => payload }, take: () => new Promise(() => {}) } },
  onState: ({ state }) => { if (state === "closed") process.exit(0); },
});
// For a server that is gone without a word.
setTimeout(() => process.exit(1), 60_000);
