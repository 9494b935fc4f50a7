#include "extensions.h"

#include <stdlib.h>

#include "arena.h"
#include "lifeline_array.h"
#include "text.h"
#include "unknown_fields.h"

static uint32_t number_of(const LifelineExtension *extension) { return extension->table->fields[0].number; }

// MARK: Finding

// Extensions are in sorted runs, so that adding one need not move all that have higher numbers. The sizes of the runs
// are the powers of two that add up to the count, the largest first. An array that is sorted as a whole has such runs,
// too.
static size_t size_of_last_run(size_t count) { return count & (0 - count); }

// The extension with this number in a sorted run, or NULL.
static LifelineExtension *find_in_run(LifelineExtension *run, size_t count, uint32_t number) {
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t other = number_of(&run[middle]);
        if (other == number) return &run[middle];
        if (other < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

LifelineExtension *lifeline_find_extension(const LifelineExtensions *extensions, uint32_t number) {
    LifelineExtension *found = NULL;
    for (size_t end = extensions->count; end > 0 && found == NULL;) {
        size_t size = size_of_last_run(end);
        end -= size;
        found = find_in_run(&extensions->all[end], size, number);
    }
    return found;
}

static int compare_numbers(const void *left, const void *right) {
    uint32_t left_number = number_of(left);
    uint32_t right_number = number_of(right);
    return (left_number > right_number) - (left_number < right_number);
}

static void sort(LifelineExtension *all, size_t count) {
    bool is_sorted = true;
    for (size_t index = 1; is_sorted && index < count; index += 1) {
        is_sorted = number_of(&all[index - 1]) < number_of(&all[index]);
    }
    if (!is_sorted) qsort(all, count, sizeof *all, compare_numbers);
}

LifelineExtension *lifeline_add_extension(
    LifelineExtensions *extensions, LifelineArena *arena, const LifelineMessageTable *table, bool *added) {
    uint32_t number = table->fields[0].number;
    LifelineExtension *found = lifeline_find_extension(extensions, number);
    *added = false;
    if (found != NULL) return found;
    void *value = lifeline_message_create(table, arena);
    LifelineExtension *all = lifeline_array_reserve(
        arena, extensions->all, extensions->count, extensions->count + 1, sizeof(LifelineExtension));
    if (value == NULL || all == NULL) return NULL;
    all[extensions->count] = (LifelineExtension){.table = table, .value = value};
    extensions->all = all;
    extensions->count += 1;
    size_t size = size_of_last_run(extensions->count);
    sort(&all[extensions->count - size], size);
    *added = true;
    return lifeline_find_extension(extensions, number);
}

// MARK: Reading

static bool fail(LifelineFailure *failure, LifelineStatus status, const LifelineMessageTable *table) {
    *failure = (LifelineFailure){.status = status, .message = table};
    return false;
}

// Adds the extensions that are there, each with the size of its encoding.
static bool find_all(
    const LifelineMessageTable *table, const void *message, const LifelineTypes *types, LifelineArena *arena,
    LifelineExtensions *extensions) {
    LifelineUnknownFields fields = lifeline_unknown_fields(table, message);
    LifelineUnknownField field;
    while (lifeline_next_unknown_field(&fields, &field)) {
        const LifelineMessageTable *found =
            types->find_extension(types->context, table, field.extension_tag >> 3, NULL, 0);
        if (found == NULL) continue;
        bool added;
        LifelineExtension *extension = lifeline_add_extension(extensions, arena, found, &added);
        if (extension == NULL) return false;
        extension->count += lifeline_varint_length(field.extension_tag) + field.extension_count;
    }
    sort(extensions->all, extensions->count);
    return true;
}

// Brings the fields of each extension together, as if they were a message.
static bool gather(
    const LifelineMessageTable *table, const void *message, LifelineArena *arena, LifelineExtensions *extensions) {
    for (size_t index = 0; index < extensions->count; index += 1) {
        LifelineExtension *extension = &extensions->all[index];
        extension->bytes = lifeline_arena_allocate(arena, extension->count + LIFELINE_INPUT_SLOP);
        if (extension->bytes == NULL) return false;
        memset(extension->bytes + extension->count, 0, LIFELINE_INPUT_SLOP);
        extension->count = 0;
    }
    LifelineUnknownFields fields = lifeline_unknown_fields(table, message);
    LifelineUnknownField field;
    while (lifeline_next_unknown_field(&fields, &field)) {
        LifelineExtension *extension = lifeline_find_extension(extensions, field.extension_tag >> 3);
        if (extension == NULL) continue;
        uint8_t *place = lifeline_write_varint(extension->bytes + extension->count, field.extension_tag);
        memcpy(place, field.extension_value, field.extension_count);
        extension->count = (size_t)(place - extension->bytes) + field.extension_count;
    }
    return true;
}

bool lifeline_read_extensions(
    const LifelineMessageTable *table, const void *message, const LifelineTypes *types, bool is_strict,
    const LifelineDecodeOptions *options, LifelineArena *arena, LifelineExtensions *extensions,
    LifelineFailure *failure) {
    *extensions = (LifelineExtensions){.count = 0};
    if (types->find_extension == NULL) return true;
    if (!find_all(table, message, types, arena, extensions) || !gather(table, message, arena, extensions)) {
        return fail(failure, LIFELINE_OUT_OF_MEMORY, table);
    }
    size_t count = 0;
    for (size_t index = 0; index < extensions->count; index += 1) {
        LifelineExtension extension = extensions->all[index];
        bool decoded = lifeline_message_decode(
            extension.table, extension.value, extension.bytes, extension.count, arena, options, failure);
        bool is_limit = failure->status == LIFELINE_OUT_OF_MEMORY || failure->status == LIFELINE_TOO_DEEP;
        if (!decoded && (is_strict || is_limit)) return false;
        // An enum's number that is not declared may leave it absent.
        if (!decoded || !lifeline_is_present(extension.table->fields, extension.value)) continue;
        extensions->all[count] = extension;
        count += 1;
    }
    extensions->count = count;
    failure->status = LIFELINE_OK;
    return true;
}

// MARK: Writing

static bool append_field(LifelineText *text, const LifelineUnknownField *field) {
    uint8_t tag[LIFELINE_LARGEST_VARINT];
    size_t count = (size_t)(lifeline_write_varint(tag, field->tag) - tag);
    return lifeline_text_append(text, tag, count) && lifeline_text_append(text, field->value, field->count);
}

static bool append_item(LifelineText *text, const LifelineUnknownField *field) {
    uint8_t start[2 + LIFELINE_LARGEST_VARINT + 1] = {
        1 << 3 | LIFELINE_WIRE_START_GROUP, 2 << 3 | LIFELINE_WIRE_VARINT};
    uint8_t *end = lifeline_write_varint(start + 2, field->tag >> 3);
    *end++ = 3 << 3 | LIFELINE_WIRE_LENGTH_DELIMITED;
    uint8_t close = 1 << 3 | LIFELINE_WIRE_END_GROUP;
    return lifeline_text_append(text, start, (size_t)(end - start))
           && lifeline_text_append(text, field->value, field->count) && lifeline_text_append(text, &close, 1);
}

// Appends an extension in the form for a message that has items in place of fields.
static bool append_items(LifelineText *text, const uint8_t *bytes, size_t count) {
    LifelineUnknownFields fields = lifeline_encoded_fields(bytes, count);
    LifelineUnknownField field;
    while (lifeline_next_unknown_field(&fields, &field)) {
        // Fields of another wire type, which came beside the extension, fit into no item.
        bool is_item = (field.tag & 7) == LIFELINE_WIRE_LENGTH_DELIMITED;
        if (!(is_item ? append_item(text, &field) : append_field(text, &field))) return false;
    }
    return true;
}

static bool append_extension(
    LifelineText *text, const LifelineMessageTable *table, const LifelineExtension *extension,
    LifelineFailure *failure) {
    LifelineEncoder encoder;
    lifeline_encoder_init(&encoder, NULL, 0, true);
    bool appended = lifeline_message_encode(
        extension->table, extension->value, false, UINT32_MAX, &encoder, failure);
    if (appended) {
        const uint8_t *bytes = encoder.memory + encoder.start;
        size_t count = encoder.capacity - encoder.start;
        appended = (table->flags & LIFELINE_MESSAGE_SET) != 0 ? append_items(text, bytes, count)
                                                              : lifeline_text_append(text, bytes, count);
        if (!appended) fail(failure, LIFELINE_OUT_OF_MEMORY, table);
    }
    lifeline_encoder_destroy(&encoder);
    return appended;
}

static bool append_all(
    LifelineText *text, const LifelineMessageTable *table, const void *message, const LifelineExtensions *extensions,
    LifelineFailure *failure) {
    size_t index = 0;
    LifelineUnknownFields fields = lifeline_unknown_fields(table, message);
    LifelineUnknownField field;
    while (lifeline_next_unknown_field(&fields, &field)) {
        uint32_t number = field.extension_tag >> 3;
        for (; index < extensions->count && number_of(&extensions->all[index]) < number; index += 1) {
            if (!append_extension(text, table, &extensions->all[index], failure)) return false;
        }
        if (lifeline_find_extension(extensions, number) != NULL) continue;
        if (!append_field(text, &field)) return fail(failure, LIFELINE_OUT_OF_MEMORY, table);
    }
    for (; index < extensions->count; index += 1) {
        if (!append_extension(text, table, &extensions->all[index], failure)) return false;
    }
    return true;
}

bool lifeline_unknown_fields_set(void *message, const uint8_t *bytes, size_t count, LifelineArena *arena) {
    ProtobufCMessage *base = message;
    if (count == 0) {
        base->n_unknown_fields = 0;
        return true;
    }
    uint8_t *memory = lifeline_arena_allocate(arena, count);
    ProtobufCMessageUnknownField *run =
        lifeline_array_reserve(arena, NULL, 0, 1, sizeof(ProtobufCMessageUnknownField));
    if (memory == NULL || run == NULL) return false;
    memcpy(memory, bytes, count);
    LifelineInput input = {.next = memory, .end = memory + count};
    uint32_t tag = 0;
    if (lifeline_read_tag(&input, &tag) != LIFELINE_OK) return false;
    *run = (ProtobufCMessageUnknownField){
        .tag = tag >> 3,
        .wire_type = (ProtobufCWireType)(tag & 7),
        .len = lifeline_left(&input),
        .data = (uint8_t *)(uintptr_t)input.next};
    base->unknown_fields = run;
    base->n_unknown_fields = 1;
    return true;
}

bool lifeline_write_extensions(
    const LifelineMessageTable *table, void *message, LifelineExtensions *extensions, LifelineArena *arena,
    LifelineFailure *failure) {
    if (extensions->count == 0) return true;
    sort(extensions->all, extensions->count);
    LifelineText text;
    lifeline_text_init(&text, NULL, 0);
    bool written = append_all(&text, table, message, extensions, failure);
    if (written && !lifeline_unknown_fields_set(message, text.memory, text.count, arena)) {
        written = fail(failure, LIFELINE_OUT_OF_MEMORY, table);
    }
    lifeline_text_destroy(&text);
    return written;
}

// MARK: Those that are present

static LifelineDecodeOptions options_for_reading(bool accept_malformed_text) {
    return (LifelineDecodeOptions){
        .maximum_depth = 1000,  // as deep as decoding goes at most
        .accept_malformed_text = accept_malformed_text};
}

// Whether an extension's bytes are of its type, and fit into the budget.
static bool is_readable(const LifelineExtension *extension, const LifelineDecodeOptions *options, size_t limit) {
    uint64_t start[32];
    LifelineArena arena;
    lifeline_arena_init(&arena, start, sizeof start, 0);
    // lifeline_extension_read has the bytes in the same budget.
    size_t byte_count = extension->count + LIFELINE_INPUT_SLOP;
    arena.budget = lifeline_arena_budget(limit > byte_count ? limit - byte_count : 0);
    void *value = lifeline_message_create(extension->table, &arena);
    LifelineFailure failure;
    bool readable = value != NULL
                    && lifeline_message_decode(
                        extension->table, value, extension->bytes, extension->count, &arena, options, &failure)
                    && lifeline_is_present(extension->table->fields, value);
    lifeline_arena_destroy(&arena);
    return readable;
}

bool lifeline_extensions_present(
    const LifelineMessageTable *table, const void *message, const LifelineTypes *types, bool accept_malformed_text,
    size_t limit, LifelineExtensionVisit visit) {
    uint64_t start[32];
    LifelineArena arena;
    lifeline_arena_init(&arena, start, sizeof start, 0);
    LifelineDecodeOptions options = options_for_reading(accept_malformed_text);
    LifelineExtensions extensions = {.count = 0};
    bool found = find_all(table, message, types, &arena, &extensions) && gather(table, message, &arena, &extensions);
    for (size_t index = 0; found && index < extensions.count; index += 1) {
        const LifelineExtension *extension = &extensions.all[index];
        if (is_readable(extension, &options, limit)) visit(types->context, extension->table);
    }
    lifeline_arena_destroy(&arena);
    return found;
}

// MARK: One extension

static const LifelineMessageTable *find_only(
    void *only, const LifelineMessageTable *extended, uint32_t number, const char *name, size_t count) {
    (void)extended, (void)name, (void)count;
    const LifelineMessageTable *table = only;
    return table->fields[0].number == number ? table : NULL;
}

void *lifeline_extension_read(const LifelineMessageTable *extension, const void *message, LifelineArena *arena) {
    const ProtobufCMessage *base = message;
    if (base->n_unknown_fields == 0) return NULL;
    LifelineTypes types = {.find_extension = find_only, .context = (void *)(uintptr_t)extension};
    LifelineDecodeOptions options = options_for_reading(arena->may_hold_malformed_text);
    LifelineExtensions extensions;
    LifelineFailure failure;
    bool found = lifeline_read_extensions(
        extension->extended, message, &types, false, &options, arena, &extensions, &failure);
    return found && extensions.count > 0 ? extensions.all[0].value : NULL;
}

bool lifeline_extension_write(
    const LifelineMessageTable *extension, void *message, const void *value, LifelineArena *arena) {
    LifelineExtension one = {.table = extension, .value = (void *)(uintptr_t)value};
    LifelineExtensions extensions = {.all = &one, .count = 1};
    LifelineFailure failure;
    return lifeline_write_extensions(extension->extended, message, &extensions, arena, &failure);
}

const char *lifeline_extension_text_name(const LifelineMessageTable *extension, size_t *count) {
    const LifelineField *field = extension->fields;
    const char *name = extension->full_name;
    *count = strlen(name);
    bool is_in_set = (extension->extended->flags & LIFELINE_MESSAGE_SET) != 0 && field->message != NULL
                     && !lifeline_is_repeated(field);
    if (!is_in_set) return name;
    // Declared in the message: `message.name`.
    size_t scope = strlen(field->message->full_name);
    bool is_in_message = strncmp(name, field->message->full_name, scope) == 0 && name[scope] == '.'
                         && strchr(name + scope + 1, '.') == NULL;
    if (!is_in_message) return name;
    *count = scope;
    return field->message->full_name;
}

// MARK: Checking

typedef struct ExtensionCheck {
    const LifelineTypes *types;
    LifelineDecodeOptions options;  // with the depth and the budget that are left
    bool partial;
    LifelineFailure *failure;
} ExtensionCheck;

static bool check_message(ExtensionCheck *check, const LifelineMessageTable *table, const void *message);

// Checks the content of a field's values.
static bool check_values(ExtensionCheck *check, const LifelineField *field, const void *message) {
    size_t count;
    const uint8_t *values = lifeline_values(field, message, &count);
    // The message may be deeper than the limit, which is one of extensions.
    uint32_t depth = check->options.maximum_depth;
    if (depth > 0) check->options.maximum_depth -= 1;
    bool is_valid = true;
    for (size_t index = 0; is_valid && index < count; index += 1) {
        const void *submessage = lifeline_load_message(field, values + index * sizeof(void *));
        is_valid = check_message(check, field->message, submessage);
    }
    check->options.maximum_depth = depth;
    return is_valid;
}

static bool check_extensions(ExtensionCheck *check, const LifelineMessageTable *table, const void *message) {
    uint64_t start[32];
    LifelineArena arena;
    lifeline_arena_init(&arena, start, sizeof start, 0);
    arena.budget = check->options.budget;
    LifelineExtensions extensions;
    bool is_valid = lifeline_read_extensions(
        table, message, check->types, true, &check->options, &arena, &extensions, check->failure);
    uint32_t budget = check->options.budget;
    check->options.budget = arena.budget;
    for (size_t index = 0; is_valid && index < extensions.count; index += 1) {
        const LifelineExtension *extension = &extensions.all[index];
        is_valid = check_message(check, extension->table, extension->value)
                   && (check->partial
                       || !lifeline_message_missing_required(extension->table, extension->value, check->failure));
    }
    check->options.budget = budget;
    lifeline_arena_destroy(&arena);
    return is_valid;
}

static bool check_message(ExtensionCheck *check, const LifelineMessageTable *table, const void *message) {
    const ProtobufCMessage *base = message;
    if (base->n_unknown_fields > 0 && !check_extensions(check, table, message)) return false;
    for (uint32_t index = 0; index < table->field_count; index += 1) {
        const LifelineField *field = &table->fields[index];
        if (field->message == NULL || !lifeline_is_present(field, message)) continue;
        if (!check_values(check, field, message)) return false;
    }
    return true;
}

bool lifeline_extensions_check(
    const LifelineMessageTable *table, const void *message, const LifelineTypes *types, bool partial,
    const LifelineDecodeOptions *options, LifelineFailure *failure) {
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    ExtensionCheck check = {
        .types = types,
        .options = *options,
        .partial = partial,
        .failure = failure};
    return types->find_extension == NULL || check_message(&check, table, message);
}
