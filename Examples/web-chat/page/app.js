// The page: the user's actions go to the connection, and received messages go to the log. Text of others only becomes
// text nodes.
import { ChatMessage, date, Kind, timestamp } from "./chat-message.js";
import { ChatConnection } from "./connection.js";

/** How many entries the log keeps; older ones go. */
const MAXIMUM_ENTRIES = 500;

const [state, stateName, countdown, reconnect, leave, joining, name, server, room, log, composer, text, error] = [
  "state", "state-name", "countdown", "reconnect", "leave", "joining", "name", "server", "room", "log", "composer",
  "text", "error",
].map((id) => document.getElementById(id));
const sendButton = composer.querySelector("button");

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

let connection = null;
let ticking = null;
let position = 0n;

server.value = new URLSearchParams(location.search).get("server")
  ?? `${location.protocol === "https:" ? "wss" : "ws"}://${location.hostname || "localhost"}:8080/chat`;

joining.addEventListener("submit", (event) => {
  event.preventDefault();
  showError(null);
  try {
    connection = new ChatConnection(server.value, ChatMessage, {
      onState: showState, onMessage: showMessage, onError: (words) => appendNotice(words, "problem"),
    });
  } catch {
    return showError("This is no address of a server that this page may connect to: ws://… or wss://….");
  }
  showRoom(true);
  text.focus();
});

composer.addEventListener("submit", (event) => {
  event.preventDefault();
  if (text.value.trim() === "") return;
  const message = makeMessage(text.value);
  const problem = connection.send(message);
  showError(problem);
  if (problem) return;
  appendMessage(message, true);
  text.value = "";
});

reconnect.addEventListener("click", () => {
  showError(null);
  connection.reconnect();
  text.focus();
});

leave.addEventListener("click", () => {
  connection.close();
  showRoom(false);
  name.focus();
});

function makeMessage(words) {
  const [nonce] = crypto.getRandomValues(new BigUint64Array(1));
  position += 1n;
  return {
    id: nonce.toString(16), from: name.value, text: words, kind: Kind.text, nonce, position, mentions: [],
    sentAt: timestamp(Date.now()),
  };
}

// Display

function showRoom(isShown) {
  joining.hidden = isShown;
  room.hidden = leave.hidden = !isShown;
}

function showState(value, delay) {
  clearInterval(ticking);
  countdown.textContent = "";
  state.dataset.state = value;
  reconnect.hidden = value !== "gaveUp";
  // The text can be written meanwhile.
  sendButton.disabled = value !== "open";
  switch (value) {
    case "connecting":
      stateName.textContent = "Connecting…";
      break;
    case "open":
      stateName.textContent = `Connected as ${name.value}`;
      showError(null);
      break;
    case "waiting":
      stateName.textContent = "No connection";
      countDown(Date.now() + delay);
      break;
    case "gaveUp":
      stateName.textContent = "No connection";
      showError("The server cannot be reached. Try again when it is back.");
      break;
    case "closed":
      stateName.textContent = "Not connected";
      showError(null);
      break;
  }
}

function countDown(end) {
  const show = () => {
    countdown.textContent = `, next attempt in ${Math.max(1, Math.ceil((end - Date.now()) / 1000))} s`;
  };
  show();
  ticking = setInterval(show, 1000);
}

function showError(words) {
  error.hidden = !words;
  error.textContent = words ?? "";
}

function showMessage(message) {
  if (message.kind === Kind.system) appendNotice(message.text);
  else appendMessage(message, false);
}

function appendMessage(message, isOwn) {
  const entry = element("div", isOwn ? "message own" : "message");
  const head = element("p", "head");
  const sender = element("bdi", "sender", isOwn ? "You" : message.from || "Somebody");
  const sentAt = date(message.sentAt);
  head.append(sender);
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

function appendNotice(words, kind = "") {
  append(element("p", `notice ${kind}`, words));
}

/** Whether the log follows the newest entry: yes, unless the user has scrolled up to read. */
let followsEnd = true;
log.addEventListener("scroll", () => { followsEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40; });
new ResizeObserver(() => { if (followsEnd) scrollToEnd(); }).observe(log);

function append(entry) {
  followsEnd ||= entry.classList.contains("own");
  log.append(entry);
  while (log.childElementCount > MAXIMUM_ENTRIES) log.firstElementChild.remove();
  if (followsEnd) scrollToEnd();
}

function scrollToEnd() {
  log.scrollTop = log.scrollHeight;
}

function element(tag, className, content = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = content;
  return made;
}
