// A client of a session server until a final goodbye, to test its reactions to the server. It never takes the pushes of
// interop.Peer/Block.
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
// For a server that disappears without closing.
setTimeout(() => process.exit(1), 60_000);
