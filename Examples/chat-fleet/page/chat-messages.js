// The parts of protos/chat_room.proto and Protos/lifeline/fleet/v1/fleet.proto that this page needs. Other fields are
// skipped.
import { MessageType } from "./lifeline-session.js";

/** google.protobuf.Timestamp */
const Timestamp = new MessageType({ seconds: [1, "int64"], nanos: [2, "int32"] });

/** example.chat.v1.SayRequest, and so on */
export const SayRequest = new MessageType({
  room: [1, "string"], key: [2, "string"], from: [3, "string"], text: [4, "string"],
});
export const SayReply = new MessageType({});
export const Message = new MessageType({
  key: [1, "string"], from: [2, "string"], text: [3, "string"], sentAt: [4, Timestamp],
});

/** lifeline.fleet.v1.Position, and so on */
const Position = new MessageType({ epoch: [1, "fixed64"], offset: [2, "uint64"] });
export const JoinRequest = new MessageType({ group: [1, "string"], after: [2, Position], earliest: [3, "bool"] });
export const JoinReply = new MessageType({ position: [1, Position], recovered: [2, "bool"] });

/**
 * The group's entry in the metadata of a push: the group's name, the message's position, and whether messages before it
 * are lost. Null if it is malformed.
 */
export function groupMark(metadata) {
  const parts = /^([0-9a-f]{1,16})-([0-9]{1,20})((?:\+[a-z]+)*) (.+)$/s.exec(metadata.get("lifeline-group") ?? "");
  if (!parts) return null;
  const [, epoch, offset, flags, group] = parts;
  return {
    group, position: { epoch: BigInt(`0x${epoch}`), offset: BigInt(offset) },
    followsGap: flags.split("+").includes("gap"),
  };
}

/** A Timestamp as a Date; null if there is none, or if it is beyond the range of a Date (270,000 years). */
export function date(timestamp) {
  if (!timestamp) return null;
  const date = new Date(Number(timestamp.seconds) * 1000 + timestamp.nanos / 1_000_000);
  return Number.isNaN(date.getTime()) ? null : date;
}
