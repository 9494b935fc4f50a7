// The laws of encoding: what is decoded, encoded and decoded again is equal, encodings are canonical, a delimited
// message is its length and then the message; and decoding one message after another merges them.
#include "fuzz_input.h"

static bool same_bytes(const uint8_t *left, size_t left_count, const uint8_t *right, size_t right_count) {
    return left_count == right_count && (left_count == 0 || memcmp(left, right, left_count) == 0);
}

static void check_delimited(const FuzzMessage *message, uint32_t depth, const uint8_t *encoded, size_t count) {
    uint8_t prefix[10];
    size_t prefix_count = 0;
    size_t rest = count;
    do {
        prefix[prefix_count] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        prefix_count += 1;
        rest >>= 7;
    } while (rest > 0);

    size_t delimited_count = 0;
    uint8_t *delimited = fuzz_encode(message, true, depth, &delimited_count);
    FUZZ_CHECK(delimited_count == prefix_count + count);
    FUZZ_CHECK(same_bytes(delimited, prefix_count, prefix, prefix_count));
    FUZZ_CHECK(same_bytes(delimited + prefix_count, count, encoded, count));
    free(delimited);
}

static void check_encoding(const FuzzMessage *message, const FuzzInput *input) {
    size_t count = 0;
    uint8_t *encoded = fuzz_encode(message, false, input->depth, &count);
    check_delimited(message, input->depth, encoded, count);

    FuzzBytes bytes = fuzz_copy_bytes(encoded, count, 0x80, 0);
    FuzzMessage again = fuzz_create_message(message->table, NULL, 0, fuzz_ample_budget);
    // An entry of a map is written with its value, one level further down, also where the input had none.
    FUZZ_CHECK(fuzz_decode(lifeline_message_decode, &again, &bytes, input->depth + 1));
    FUZZ_CHECK(lifeline_message_equal(message->table, message->fields, again.fields));
    LifelineFailure missing;
    FUZZ_CHECK(
        lifeline_message_missing_required(message->table, message->fields, &missing)
        == lifeline_message_missing_required(message->table, again.fields, &missing));

    size_t count_again = 0;
    uint8_t *encoded_again = fuzz_encode(&again, false, input->depth + 1, &count_again);
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

// Moves over one field of the root; false when there is none, or a group, or something that is not protobuf.
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

// Whether a varint is longer than its value needs.
static bool is_overlong(const uint8_t *bytes, size_t count) {
    size_t last = 0;
    while (last < count && bytes[last] >= 0x80) last += 1;
    return last > 0 && last < count && bytes[last] == 0;
}

// Where the root's fields can be cut in two, `choice` fields from the start at most. Not in front of an overlong tag:
// of unknown fields that follow each other, the first one's tag is written as short as it can be, the others' as they
// were.
static size_t split_position(const FuzzInput *input, uint8_t choice) {
    size_t position = 0;
    for (size_t next = 0; choice > 0 && skip_field(input->message, input->count, &next); choice -= 1) {
        if (!is_overlong(input->message + next, input->count - next)) position = next;
    }
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

// Decoding a, then merging b, is decoding a and b in one: its failures too.
static void check_merge(const FuzzMessage *whole, const FuzzInput *input) {
    size_t split = split_position(input, input->variant);
    FuzzBytes first = fuzz_copy_bytes(input->message, split, 0x00, 0);
    FuzzBytes second = fuzz_copy_bytes(input->message + split, input->count - split, 0xff, input->variant & 7);
    FuzzMessage merged = fuzz_create_message(input->table, NULL, 0, fuzz_ample_budget);
    size_t decoded_before = 0;
    bool decoded = fuzz_decode(lifeline_message_decode, &merged, &first, input->depth);
    if (decoded) {
        check_equality(&merged, whole, input->depth);
        decoded_before = split;
        decoded = fuzz_decode(lifeline_message_decode, &merged, &second, input->depth);
    }
    FUZZ_CHECK(merged.failure.status == whole->failure.status);
    if (decoded) {
        FUZZ_CHECK(lifeline_message_equal(input->table, merged.fields, whole->fields));
    } else {
        FUZZ_CHECK(merged.failure.offset + decoded_before == whole->failure.offset);
        FUZZ_CHECK(merged.failure.field_number == whole->failure.field_number);
        FUZZ_CHECK(merged.failure.message == whole->failure.message);
    }
    fuzz_free_message(&merged);
    fuzz_free_bytes(&first);
    fuzz_free_bytes(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    FuzzInput input;
    if (!fuzz_read_input(data, size, &input)) return -1;
    FuzzBytes bytes = fuzz_copy_bytes(input.message, input.count, input.variant, input.variant & 7);
    FuzzMessage message = fuzz_create_message(input.table, NULL, 0, fuzz_ample_budget);
    if (fuzz_decode(lifeline_message_decode, &message, &bytes, input.depth)) check_encoding(&message, &input);
    check_merge(&message, &input);
    fuzz_free_message(&message);
    fuzz_free_bytes(&bytes);
    return 0;
}
