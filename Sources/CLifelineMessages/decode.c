// Decodes an encoded message: the functions that others call.
#include "arena.h"
#include "decoder.h"

static bool decode_with(
    LifelineDecodeFields *decode_fields, const LifelineMessageTable *table, void *message, const uint8_t *bytes,
    size_t count, LifelineArena *arena, const LifelineDecodeOptions *options, LifelineFailure *failure) {
    LifelineDecoder decoder = {
        .arena = arena,
        .depth = options->maximum_depth,
        .accept_malformed_text = options->accept_malformed_text,
        .kept_extensions = options->kept_extensions,
        .decode_fields = decode_fields,
        .bytes = bytes,
        .failure = failure,
    };
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    if (options->accept_malformed_text || (table->flags & LIFELINE_MESSAGE_HAS_UNCHECKED_TEXT) != 0) {
        arena->may_hold_malformed_text = true;
    }
    if (count == 0) return true;
    LifelineInput input = {.next = bytes, .end = bytes + count};
    bool decoded = decode_fields(&decoder, table, message, input);
    if (decoder.unsorted_maps == NULL) return decoded;
    // After a failure too: readers of maps rely on the order.
    return lifeline_sort_maps(&decoder) && decoded;
}

bool lifeline_message_decode_plain(
    const LifelineMessageTable *table, void *message, const uint8_t *bytes, size_t count, LifelineArena *arena,
    const LifelineDecodeOptions *options, LifelineFailure *failure) {
    return decode_with(lifeline_decode_fields_plain, table, message, bytes, count, arena, options, failure);
}

bool lifeline_message_decode(
    const LifelineMessageTable *table, void *message, const uint8_t *bytes, size_t count, LifelineArena *arena,
    const LifelineDecodeOptions *options, LifelineFailure *failure) {
#if defined(LIFELINE_HAS_TAIL_CALLS)
    LifelineDecodeFields *decode_fields = lifeline_decode_fields_with_tail_calls;
#else
    LifelineDecodeFields *decode_fields = lifeline_decode_fields_plain;
#endif
    return decode_with(decode_fields, table, message, bytes, count, arena, options, failure);
}

void *lifeline_message_parse(
    const LifelineMessageTable *table, const uint8_t *bytes, size_t count, LifelineArena *arena, void *memory,
    size_t size, const LifelineDecodeOptions *options, LifelineFailure *failure) {
    lifeline_arena_init(arena, memory, size, count / 4);
    arena->budget = options->budget;
    // Both fit, in the size of lifeline_message_parse_size. The root is directly after the copy of the input.
    _Static_assert(
        sizeof(ProtobufCMessage) >= LIFELINE_INPUT_SLOP,
        "The root, which begins with a ProtobufCMessage, is what is readable behind the input.");
    uint8_t *copy = lifeline_arena_take(arena, lifeline_rounded_up(count));
    if (count > 0) memcpy(copy, bytes, count);
    size_t root_size = lifeline_rounded_up(table->size);
    void *message = lifeline_arena_take(arena, root_size);
    lifeline_clear_message(table, message, root_size);
    return lifeline_message_decode(table, message, copy, count, arena, options, failure) ? message : NULL;
}
