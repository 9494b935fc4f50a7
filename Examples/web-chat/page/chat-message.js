// The parts of Protos/sample/chat/v1/chat.proto that this page needs. Other fields are skipped.
import { MessageType } from "./protobuf.js";

export const Kind = Object.freeze({ unspecified: 0, text: 1, image: 2, system: 3 });

/** google.protobuf.Timestamp */
const Timestamp = new MessageType({ seconds: [1, "int64"], nanos: [2, "int32"] });

/** sample.chat.v1.ChatMessage */
export const ChatMessage = new MessageType({
  id: [1, "string"],
  from: [2, "string"],
  text: [4, "string"],
  mentions: [7, "uint64", "repeated"],
  kind: [8, "enum"],
  nonce: [12, "fixed64"],
  sentAt: [13, Timestamp],
  position: [21, "sint64"],
});

/** A time in milliseconds since 1970 as a Timestamp. */
export function timestamp(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  return { seconds: BigInt(seconds), nanos: Math.round((milliseconds - seconds * 1000) * 1_000_000) };
}

/** A Timestamp as a Date; null if there is none, or if it is beyond the range of a Date (270,000 years). */
export function date(timestamp) {
  if (!timestamp) return null;
  const date = new Date(Number(timestamp.seconds) * 1000 + timestamp.nanos / 1_000_000);
  return Number.isNaN(date.getTime()) ? null : date;
}
