// The laws of encoding: a message that is encoded and decoded again is equal; encodings are canonical; a delimited
// message is its length and then the message; the owner of the output memory makes no difference; and decoding one
// message after another merges them.
#include "fuzz_input.h"

static bool same_bytes(const uint8_t *left, size_t left_count, const uint8_t *right, size_t right_count) {
    return left_count == right_count && (left_count == 0 || memcmp(left, right, left_count) == 0);
}

// A message, and its encoding.
typedef struct Encoding {
    const FuzzMessage *message;
    uint32_t depth;
    bool delimited;
    const uint8_t *bytes;
    size_t count;
} Encoding;

// lifeline_encoder_init promises that there is room for a message if it leaves this many bytes free.
static const size_t ample_room = 88;

// Whether the encoder holds `first` followed by `second`.
static bool holds(
    const LifelineEncoder *encoder, const uint8_t *first, size_t first_count, const uint8_t *second,
    size_t second_count) {
    const uint8_t *held = encoder->memory + encoder->start;
    return encoder->capacity - encoder->start == first_count + second_count
        && same_bytes(held, first_count, first, first_count)
        && same_bytes(held + first_count, second_count, second, second_count);
}

// Encodes into memory of the caller that has `room` bytes before the `held_count` bytes that it already holds.
static void check_encoding_in(const Encoding *expected, size_t room, size_t held_count, bool can_grow) {
    uint8_t *memory = malloc(room + held_count);
    uint8_t *held = malloc(held_count);
    FUZZ_CHECK((memory != NULL || room + held_count == 0) && (held != NULL || held_count == 0));
    for (size_t index = 0; index < held_count; index += 1) held[index] = (uint8_t)(index * 37 + 1);
    if (held_count > 0) memcpy(memory + room, held, held_count);
    LifelineEncoder encoder;
    lifeline_encoder_init(&encoder, memory, room + held_count, can_grow);
    encoder.start -= held_count;

    const FuzzMessage *message = expected->message;
    LifelineFailure failure;
    if (lifeline_message_encode(
            message->table, message->fields, expected->delimited, expected->depth, &encoder, &failure)) {
        FUZZ_CHECK(failure.status == LIFELINE_OK);
        FUZZ_CHECK(holds(&encoder, expected->bytes, expected->count, held, held_count));
        FUZZ_CHECK(encoder.owns_memory || room >= expected->count);
    } else {
        FUZZ_CHECK(failure.status == LIFELINE_NO_ROOM && failure.message != NULL);
        FUZZ_CHECK(!can_grow && room < expected->count + ample_room);
        FUZZ_CHECK(holds(&encoder, NULL, 0, held, held_count));
    }
    FUZZ_CHECK(can_grow || (!encoder.owns_memory && encoder.memory == memory));
    FUZZ_CHECK(held_count == 0 || memcmp(memory + room, held, held_count) == 0);
    lifeline_encoder_destroy(&encoder);
    free(memory);
    free(held);
}

// In memory that certainly has room, may have room, has exactly enough, or has none; with and without held bytes.
static void check_memory(const Encoding *expected, uint8_t variant) {
    size_t count = expected->count;
    size_t rooms[] = {count + ample_room, count + variant % ample_room, count, count == 0 ? 0 : variant % count};
    for (size_t index = 0; index < sizeof rooms / sizeof *rooms; index += 1) {
        check_encoding_in(expected, rooms[index], 0, false);
        check_encoding_in(expected, rooms[index], variant, false);
        check_encoding_in(expected, rooms[index], variant, true);
    }
}

static void check_delimited(const Encoding *plain, uint8_t variant) {
    uint8_t prefix[10];
    size_t prefix_count = 0;
    size_t rest = plain->count;
    do {
        prefix[prefix_count] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        prefix_count += 1;
        rest >>= 7;
    } while (rest > 0);

    size_t count = 0;
    uint8_t *bytes = fuzz_encode(plain->message, true, plain->depth, &count);
    FUZZ_CHECK(count == prefix_count + plain->count);
    FUZZ_CHECK(same_bytes(bytes, prefix_count, prefix, prefix_count));
    FUZZ_CHECK(same_bytes(bytes + prefix_count, plain->count, plain->bytes, plain->count));
    Encoding delimited = *plain;
    delimited.delimited = true;
    delimited.bytes = bytes;
    delimited.count = count;
    check_memory(&delimited, variant);
    free(bytes);
}

static void check_encoding(const FuzzMessage *message, const FuzzInput *input) {
    uint32_t depth = input->options.maximum_depth;
    size_t count = 0;
    uint8_t *encoded = fuzz_encode(message, false, depth, &count);
    Encoding plain = {.message = message, .depth = depth, .bytes = encoded, .count = count};
    check_memory(&plain, input->variant);
    check_delimited(&plain, input->variant);

    FuzzBytes bytes = fuzz_copy_bytes(encoded, count, 0x80, 0);
    FuzzMessage again = fuzz_create_message(message->table, NULL, 0, fuzz_ample_budget);
    // A map entry is written with its value, one level deeper, even if the input had none.
    LifelineDecodeOptions deeper = input->options;
    deeper.maximum_depth += 1;
    FUZZ_CHECK(fuzz_decode(lifeline_message_decode, &again, &bytes, &deeper));
    FUZZ_CHECK(lifeline_message_equal(message->table, message->fields, again.fields));
    LifelineFailure missing;
    FUZZ_CHECK(
        lifeline_message_missing_required(message->table, message->fields, &missing)
        == lifeline_message_missing_required(message->table, again.fields, &missing));

    size_t count_again = 0;
    uint8_t *encoded_again = fuzz_encode(&again, false, depth + 1, &count_again);
    FUZZ_CHECK(same_bytes(encoded, count, encoded_again, count_again));
    free(encoded_again);
    free(encoded);
    fuzz_free_message(&again);
    fuzz_free_bytes(&bytes);
}

static bool skip_varint(const uint8_t *bytes, size_t count, size_t *position, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *position < count; shift += 7) {
        uint8_t byte = bytes[*position];
        *position += 1;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

// Skips one field of the root; false if there is none, or for a group or malformed bytes.
static bool skip_field(const uint8_t *bytes, size_t count, size_t *position) {
    uint64_t tag = 0;
    uint64_t length = 0;
    if (!skip_varint(bytes, count, position, &tag)) return false;
    switch (tag & 7) {
        case 0:
            return skip_varint(bytes, count, position, &length);
        case 1:
            length = 8;
            break;
        case 2:
            if (!skip_varint(bytes, count, position, &length)) return false;
            break;
        case 5:
            length = 4;
            break;
        default:
            return false;
    }
    if (length > count - *position) return false;
    *position += length;
    return true;
}

// A position where the root's fields can be split, at most `choice` fields from the start.
static size_t split_position(const FuzzInput *input, uint8_t choice) {
    size_t position = 0;
    for (size_t next = 0; choice > 0 && skip_field(input->message, input->count, &next); choice -= 1) position = next;
    return position;
}

// Messages are equal if and only if they encode to the same bytes.
static void check_equality(const FuzzMessage *left, const FuzzMessage *right, uint32_t depth) {
    size_t left_count = 0;
    size_t right_count = 0;
    uint8_t *left_bytes = fuzz_encode(left, false, depth, &left_count);
    uint8_t *right_bytes = fuzz_encode(right, false, depth, &right_count);
    bool equal = same_bytes(left_bytes, left_count, right_bytes, right_count);
    FUZZ_CHECK(lifeline_message_equal(left->table, left->fields, right->fields) == equal);
    FUZZ_CHECK(lifeline_message_equal(left->table, right->fields, left->fields) == equal);
    free(left_bytes);
    free(right_bytes);
}

// Decoding a and then merging b equals decoding a and b at once, including failures.
static void check_merge(const FuzzMessage *whole, const FuzzInput *input) {
    size_t split = split_position(input, input->variant);
    FuzzBytes first = fuzz_copy_bytes(input->message, split, 0x00, 0);
    FuzzBytes second = fuzz_copy_bytes(input->message + split, input->count - split, 0xff, input->variant & 7);
    FuzzMessage merged = fuzz_create_message(input->table, NULL, 0, fuzz_ample_budget);
    size_t decoded_before = 0;
    bool decoded = fuzz_decode(lifeline_message_decode, &merged, &first, &input->options);
    if (decoded) {
        check_equality(&merged, whole, input->options.maximum_depth);
        decoded_before = split;
        decoded = fuzz_decode(lifeline_message_decode, &merged, &second, &input->options);
    }
    if (!decoded) merged.failure.offset += decoded_before;
    FUZZ_CHECK(fuzz_same_failure(&merged.failure, &whole->failure));
    if (decoded) FUZZ_CHECK(lifeline_message_equal(input->table, merged.fields, whole->fields));
    fuzz_free_message(&merged);
    fuzz_free_bytes(&first);
    fuzz_free_bytes(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    FuzzInput input;
    if (!fuzz_read_input(data, size, &input)) return -1;
    FuzzBytes bytes = fuzz_copy_bytes(input.message, input.count, input.variant, input.variant & 7);
    FuzzMessage message = fuzz_create_message(input.table, NULL, 0, fuzz_ample_budget);
    if (fuzz_decode(lifeline_message_decode, &message, &bytes, &input.options)) check_encoding(&message, &input);
    check_merge(&message, &input);
    fuzz_free_message(&message);
    fuzz_free_bytes(&bytes);
    return 0;
}
