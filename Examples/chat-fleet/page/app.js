// The page: the user's actions go to the room, and the room's messages go to the log. Text of others only becomes text
// nodes.
import { date } from "./chat-messages.js";
import { ChatRoom } from "./room.js";

/** How many entries the log keeps; older ones go. */
const MAXIMUM_ENTRIES = 1_000;

const [state, joining, name, roomName, servers, room, title, log, unsent, composer, text, leave, error] = [
  "state", "joining", "name", "room-name", "servers", "room", "title", "log", "unsent", "composer", "text", "leave",
  "error",
].map((id) => document.getElementById(id));

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

let chat = null;

// ?ports=8081,8082,8083 names servers of this machine; the first one is tried first.
const parameters = new URLSearchParams(location.search);
const host = location.hostname || "127.0.0.1";
const ports = (parameters.get("ports") ?? "8081,8082,8083").split(",");
servers.value = ports.map((port) => `ws://${host}:${port}/chat`).join(" ");
name.value = parameters.get("name") ?? "";
roomName.value = parameters.get("room") ?? "lobby";

joining.addEventListener("submit", (event) => {
  event.preventDefault();
  showError(null);
  try {
    chat = new ChatRoom(servers.value.trim().split(/\s+/), roomName.value, name.value, {
      onState: showState,
      onMessage: showMessage,
      onGap: () => appendNotice("Some messages are missing here."),
      onRefused: (key, words) => {
        // Messages to a room that refuses the page stay in the form.
        document.getElementById(`unsent-${key}`)?.remove();
        showError(words);
      },
    });
  } catch {
    return showError("These are no addresses of servers: ws://… or wss://…, with blanks between them.");
  }
  [title.textContent, joining.hidden, room.hidden, leave.hidden] = [roomName.value, true, false, false];
  text.focus();
});

composer.addEventListener("submit", (event) => {
  event.preventDefault();
  if (text.value.trim() === "") return;
  showError(null);
  const entry = element("p", "unsent", text.value);
  entry.id = `unsent-${chat.say(text.value)}`;
  unsent.append(entry);
  text.value = "";
  scrollToEnd();
});

leave.addEventListener("click", () => {
  chat.close();
  log.replaceChildren();
  unsent.replaceChildren();
  [joining.hidden, room.hidden, leave.hidden] = [false, true, true];
  name.focus();
});

addEventListener("online", () => chat?.reconnect());
// Otherwise the server would keep the session, and its membership of the room, for two minutes.
addEventListener("pagehide", ({ persisted }) => { if (!persisted) chat?.close(); });

// Display

function showState({ state: value, url, delay, message }) {
  state.dataset.state = value;
  switch (value) {
    case "connecting":
      state.dataset.server = url;
      state.textContent = `Connecting to ${new URL(url).host}…`;
      break;
    case "open":
      state.textContent = `Connected to ${new URL(state.dataset.server).host}`;
      break;
    case "waiting":
      state.textContent = `No connection, next attempt in ${(delay / 1000).toFixed(1)} s`;
      break;
    case "closed":
      state.textContent = "Not connected";
      showError(room.hidden ? null : message);
      break;
  }
}

function showError(words) {
  error.hidden = !words;
  error.textContent = words ?? "";
}

function showMessage(message, { isOwn }) {
  document.getElementById(`unsent-${message.key}`)?.remove();
  const entry = element("div", isOwn ? "message own" : "message");
  const head = element("p", "head");
  head.append(element("bdi", "sender", isOwn ? "You" : message.from));
  const sentAt = date(message.sentAt);
  if (sentAt) {
    const time = element("time", "", clock.format(sentAt));
    time.dateTime = sentAt.toISOString();
    head.append(" ", time);
  }
  const words = element("p", "text", message.text);
  words.dir = "auto";
  entry.append(head, words);
  append(entry);
}

function appendNotice(words) {
  append(element("p", "notice", words));
}

/** Whether the log follows the newest entry: yes, unless the user has scrolled up to read. */
let followsEnd = true;
const scroller = log.parentElement;
scroller.addEventListener("scroll", () => {
  followsEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 40;
});

function append(entry) {
  log.append(entry);
  while (log.childElementCount > MAXIMUM_ENTRIES) log.firstElementChild.remove();
  if (followsEnd) scrollToEnd();
}

function scrollToEnd() {
  scroller.scrollTop = scroller.scrollHeight;
}

function element(tag, className, content = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = content;
  return made;
}
