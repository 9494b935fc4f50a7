// Prints messages in text format.
#include "content.h"
#include "decoder.h"
#include "fields.h"
#include "lifeline_text_format.h"
#include "lifeline_names.h"
#include "text.h"
#include "text_format_scan.h"
#include "unknown_fields.h"
#include "utf8.h"

// One call of lifeline_text_print.
typedef struct TextPrinter {
    const LifelineTextPrintOptions *options;
    LifelineText *text;
    LifelineFailure *failure;
    uint32_t depth;   // how many messages may still be nested
    uint32_t indent;  // how many are open
    LifelineContentBudget budget;
} TextPrinter;

static bool cannot_print(TextPrinter *printer, LifelineStatus status) {
    printer->failure->status = status;
    return false;
}

static bool append(TextPrinter *printer, const void *bytes, size_t count) {
    return lifeline_text_append(printer->text, bytes, count) || cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
}

static bool append_string(TextPrinter *printer, const char *string) {
    return append(printer, string, strlen(string));
}

// MARK: Literals

static bool is_in(uint32_t scalar, uint32_t first, uint32_t last) { return scalar >= first && scalar <= last; }

// C0 and C1 controls, DEL, the separators of lines and paragraphs, and the marks, embeddings, overrides and isolates of
// bidirectional text: whatever a terminal obeys, ends the line or changes the order in which it is read.
static bool is_obeyed(uint32_t scalar) {
    return scalar < 0x20 || is_in(scalar, 0x7F, 0x9F) || scalar == 0x61C || is_in(scalar, 0x200E, 0x200F)
           || is_in(scalar, 0x2028, 0x202E) || is_in(scalar, 0x2066, 0x2069);
}

// The length of the UTF-8 of a scalar, by its first byte.
static size_t scalar_length(uint8_t first) { return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

static uint32_t scalar_at(const uint8_t *bytes, size_t length) {
    if (length == 1) return bytes[0];
    uint32_t scalar = bytes[0] & (0x7Fu >> length);
    for (size_t index = 1; index < length; index += 1) scalar = scalar << 6 | (bytes[index] & 0x3F);
    return scalar;
}

// A byte of a literal: itself where it is printable ASCII; else in octal, as every parser of text format reads it.
static uint8_t *write_byte(uint8_t *place, uint8_t byte) {
    if (byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\') {
        *place++ = byte;
        return place;
    }
    *place++ = '\\';
    switch (byte) {
        case '\n': *place++ = 'n'; break;
        case '\r': *place++ = 'r'; break;
        case '\t': *place++ = 't'; break;
        case '"':
        case '\\': *place++ = byte; break;
        default:
            *place++ = (uint8_t)('0' + (byte >> 6));
            *place++ = (uint8_t)('0' + (byte >> 3 & 7));
            *place++ = (uint8_t)('0' + (byte & 7));
    }
    return place;
}

bool lifeline_text_append_literal(LifelineText *text, const uint8_t *bytes, size_t count, bool is_text) {
    enum { LONGEST_ESCAPE = 4 };
    if (count > SIZE_MAX / 8) return false;
    uint8_t *start = lifeline_text_reserve(text, count * LONGEST_ESCAPE + 2);
    if (start == NULL) return false;
    uint8_t *place = start;
    // Bytes that are no text are escaped one by one.
    bool keeps_letters = is_text && lifeline_is_utf8(bytes, count);
    *place++ = '"';
    for (size_t index = 0; index < count;) {
        size_t length = keeps_letters ? scalar_length(bytes[index]) : 1;
        if (length > 1 && !is_obeyed(scalar_at(bytes + index, length))) {
            memcpy(place, bytes + index, length);
            place += length;
        } else {
            for (size_t byte = 0; byte < length; byte += 1) place = write_byte(place, bytes[index + byte]);
        }
        index += length;
    }
    *place++ = '"';
    text->count += (size_t)(place - start);
    return true;
}

static bool append_literal(TextPrinter *printer, ProtobufCBinaryData bytes, bool is_text) {
    return lifeline_text_append_literal(printer->text, bytes.data, bytes.len, is_text)
           || cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
}

// MARK: Layout

enum { LARGEST_INDENT = 32 };

// Begins a field: on its own line, indented, or after the last one.
static bool begin_field(TextPrinter *printer) {
    if (printer->options->in_one_line) {
        size_t count = printer->text->count;
        return count == 0 || printer->text->memory[count - 1] == ' ' || append(printer, " ", 1);
    }
    // Not deeper, or a short message could become a text as long as the square of its length.
    uint32_t levels = printer->indent < LARGEST_INDENT ? printer->indent : LARGEST_INDENT;
    for (uint32_t level = 0; level < levels; level += 1) {
        if (!append(printer, "  ", 2)) return false;
    }
    return true;
}

static bool end_field(TextPrinter *printer) {
    return printer->options->in_one_line || append(printer, "\n", 1);
}

static bool open_message(TextPrinter *printer) {
    if (printer->depth == 0) return cannot_print(printer, LIFELINE_TOO_DEEP);
    printer->depth -= 1;
    printer->indent += 1;
    return append_string(printer, printer->options->in_one_line ? " { " : " {\n");
}

static bool close_message(TextPrinter *printer) {
    printer->depth += 1;
    printer->indent -= 1;
    return begin_field(printer) && append(printer, "}", 1) && end_field(printer);
}

// MARK: Scalars

static bool append_integer(TextPrinter *printer, uint64_t number, bool is_negative) {
    uint8_t digits[LIFELINE_DIGITS + 1];
    uint8_t *place = digits;
    if (is_negative) *place++ = '-';
    place = lifeline_write_digits(place, is_negative ? 0 - number : number);
    return append(printer, digits, (size_t)(place - digits));
}

static bool append_floating_point(TextPrinter *printer, double number, bool is_float) {
    if (number != number) return append_string(printer, "nan");
    if (number - number != 0) return append_string(printer, number > 0 ? "inf" : "-inf");
    uint8_t text[32];
    const LifelineTextPrintOptions *options = printer->options;
    size_t count = is_float ? options->write_float((float)number, text) : options->write_double(number, text);
    return append(printer, text, count);
}

static bool append_enum(TextPrinter *printer, const LifelineField *field, int32_t number) {
    const LifelineEnum *enumeration = field->enumeration;
    size_t index = enumeration == NULL ? 0 : lifeline_enum_find(enumeration, number);
    if (enumeration == NULL || index == enumeration->count) {
        return append_integer(printer, (uint64_t)(int64_t)number, number < 0);
    }
    LifelineName name = enumeration->names.names[index];
    return append(printer, enumeration->names.text + name.offset, name.count);
}

static bool append_scalar(TextPrinter *printer, const LifelineField *field, const void *value) {
    switch (field->type) {
        case LIFELINE_TYPE_DOUBLE: {
            double number;
            memcpy(&number, value, sizeof number);
            return append_floating_point(printer, number, false);
        }
        case LIFELINE_TYPE_FLOAT: {
            float number;
            memcpy(&number, value, sizeof number);
            return append_floating_point(printer, number, true);
        }
        case LIFELINE_TYPE_INT64:
        case LIFELINE_TYPE_SFIXED64:
        case LIFELINE_TYPE_SINT64: {
            uint64_t bits = lifeline_load_scalar(value, 8);
            return append_integer(printer, bits, (int64_t)bits < 0);
        }
        case LIFELINE_TYPE_UINT64:
        case LIFELINE_TYPE_FIXED64: return append_integer(printer, lifeline_load_scalar(value, 8), false);
        case LIFELINE_TYPE_UINT32:
        case LIFELINE_TYPE_FIXED32: return append_integer(printer, lifeline_load32(value), false);
        case LIFELINE_TYPE_BOOL: return append_string(printer, lifeline_load32(value) != 0 ? "true" : "false");
        case LIFELINE_TYPE_STRING: return append_literal(printer, lifeline_load_bytes(value), true);
        case LIFELINE_TYPE_BYTES: return append_literal(printer, lifeline_load_bytes(value), false);
        case LIFELINE_TYPE_ENUM: return append_enum(printer, field, (int32_t)lifeline_load32(value));
        default: {
            int32_t number = (int32_t)lifeline_load32(value);
            return append_integer(printer, (uint64_t)(int64_t)number, number < 0);
        }
    }
}

// MARK: Unknown fields

// How deep bytes of unknown fields are taken for messages: whether they are one is tried anew at each level. Groups are
// told by their tags, and take none of this depth.
enum { UNKNOWN_DEPTH = 10 };

static bool print_unknown_fields(TextPrinter *printer, LifelineInput *input, uint32_t group, uint32_t depth);

static bool print_unknown_number(TextPrinter *printer, uint64_t bits, size_t size) {
    uint8_t text[2 + 16];
    memcpy(text, "0x", 2);
    for (size_t digit = 0; digit < 2 * size; digit += 1) {
        text[2 + digit] = (uint8_t)"0123456789abcdef"[bits >> (8 * size - 4 * digit - 4) & 15];
    }
    return append(printer, ": ", 2) && append(printer, text, 2 + 2 * size) && end_field(printer);
}

static bool print_unknown_bytes(TextPrinter *printer, LifelineInput payload, uint32_t depth) {
    // Groups in it take as much depth as decoding allows.
    bool may_be_message = depth > 0 && printer->depth > LIFELINE_GROUP_DEPTH && payload.next != payload.end;
    if (may_be_message && lifeline_is_message(payload)) {
        return open_message(printer) && print_unknown_fields(printer, &payload, 0, depth - 1) && close_message(printer);
    }
    return append(printer, ": ", 2)
           && (lifeline_text_append_literal(printer->text, payload.next, lifeline_left(&payload), true)
               || cannot_print(printer, LIFELINE_OUT_OF_MEMORY))
           && end_field(printer);
}

// Prints a field whose tag was just read, and moves past it.
static bool print_unknown_field(TextPrinter *printer, uint32_t tag, LifelineInput *input, uint32_t depth) {
    uint64_t bits = 0;
    LifelineInput payload;
    size_t size = (tag & 7) == LIFELINE_WIRE_FIXED64 ? 8 : 4;
    if (!begin_field(printer) || !append_integer(printer, tag >> 3, false)) return false;
    switch (tag & 7) {
        case LIFELINE_WIRE_VARINT:
            if (lifeline_read_varint(input, &bits) != LIFELINE_OK) break;
            return append(printer, ": ", 2) && append_integer(printer, bits, false) && end_field(printer);
        case LIFELINE_WIRE_FIXED64:
        case LIFELINE_WIRE_FIXED32:
            if (lifeline_left(input) < size) break;
            memcpy(&bits, input->next, size);
            input->next += size;
            return print_unknown_number(printer, bits, size);
        case LIFELINE_WIRE_LENGTH_DELIMITED:
            if (lifeline_read_payload(input, &payload) != LIFELINE_OK) break;
            return print_unknown_bytes(printer, payload, depth);
        case LIFELINE_WIRE_START_GROUP:
            return open_message(printer) && print_unknown_fields(printer, input, tag >> 3, depth)
                   && close_message(printer);
        default: break;
    }
    return cannot_print(printer, LIFELINE_TRUNCATED);
}

// Prints fields up to the end of the input, or of the group with this number.
static bool print_unknown_fields(TextPrinter *printer, LifelineInput *input, uint32_t group, uint32_t depth) {
    while (input->next != input->end) {
        uint32_t tag;
        if (lifeline_read_tag(input, &tag) != LIFELINE_OK) return cannot_print(printer, LIFELINE_INVALID_TAG);
        if ((tag & 7) == LIFELINE_WIRE_END_GROUP && tag >> 3 == group) return true;
        if (!print_unknown_field(printer, tag, input, depth)) return false;
    }
    return true;
}

// Prints the unknown fields of a message by their numbers: of extensions only the parts that are not of their types.
static bool print_all_unknown_fields(
    TextPrinter *printer, const LifelineMessageTable *table, const void *message,
    const LifelineExtensions *extensions) {
    LifelineUnknownFields fields = lifeline_unknown_fields(table, message);
    LifelineUnknownField field;
    while (lifeline_next_unknown_field(&fields, &field)) {
        if (lifeline_find_extension(extensions, field.extension_tag >> 3) != NULL) continue;
        LifelineInput input = {.next = field.value, .end = field.value + field.count};
        if (!print_unknown_field(printer, field.tag, &input, UNKNOWN_DEPTH)) return false;
    }
    for (size_t index = 0; index < extensions->count; index += 1) {
        LifelineExtension extension = extensions->all[index];
        LifelineExtensions none = {.count = 0};
        if (!print_all_unknown_fields(printer, extension.table, extension.value, &none)) return false;
    }
    return true;
}

// MARK: Messages

static bool print_fields(TextPrinter *printer, const LifelineMessageTable *table, const void *message);

static bool print_body(TextPrinter *printer, const LifelineMessageTable *table, const void *message) {
    return open_message(printer) && print_fields(printer, table, message) && close_message(printer);
}

static bool print_value(
    TextPrinter *printer, const LifelineMessageTable *table, const LifelineField *field, const void *value) {
    LifelineName name = table->names.names[2 * (field - table->fields)];
    const char *text = table->names.text + name.offset;
    size_t count = name.count;
    bool is_extension = table->extended != NULL;
    if (is_extension) {
        text = lifeline_extension_text_name(table, &count);
    } else if ((field->flags & LIFELINE_FIELD_NAMED_BY_TYPE) != 0) {
        text = lifeline_type_name(field, &count);
    }
    if (!begin_field(printer) || (is_extension && !append(printer, "[", 1)) || !append(printer, text, count)
        || (is_extension && !append(printer, "]", 1))) {
        return false;
    }
    if (field->type == LIFELINE_TYPE_MESSAGE) {
        return print_body(printer, field->message, lifeline_load_message(field, value));
    }
    return append(printer, ": ", 2) && append_scalar(printer, field, value) && end_field(printer);
}

static bool print_field(
    TextPrinter *printer, const LifelineMessageTable *table, const LifelineField *field, const void *message) {
    size_t count;
    const uint8_t *values = lifeline_values(field, message, &count);
    size_t size = lifeline_value_size(field);
    for (size_t index = 0; index < count; index += 1) {
        if (!print_value(printer, table, field, values + index * size)) return false;
    }
    return true;
}

// Prints the message in a google.protobuf.Any under its type. `*printed` is false when that is not known, the bytes are
// not of it, or it takes too much.
static bool print_content(
    TextPrinter *printer, const LifelineMessageTable *table, const void *message, bool *printed) {
    ProtobufCBinaryData url = lifeline_load_bytes(lifeline_at(message, table->fields[0].offset));
    ProtobufCBinaryData bytes = lifeline_load_bytes(lifeline_at(message, table->fields[1].offset));
    const LifelineMessageTable *content_table = lifeline_find_by_url(&printer->options->types, url.data, url.len);
    *printed = false;
    // Other bytes than those of an URL may be meant for a terminal.
    bool is_url = lifeline_text_is_url((LifelineTextToken){.bytes = url.data, .count = url.len});
    if (content_table == NULL || printer->depth == 0 || !is_url) return true;
    LifelineContent content;
    const void *content_message;
    LifelineStatus status = lifeline_open_message(
        &content, content_table, bytes.data, bytes.len, printer->depth - 1, &printer->budget, &content_message);
    if (status != LIFELINE_OK) return true;
    *printed = begin_field(printer) && append(printer, "[", 1) && append(printer, url.data, url.len)
               && append(printer, "]", 1) && print_body(printer, content_table, content_message);
    lifeline_close_content(&content, &printer->budget);
    return *printed;
}

static bool print_others(TextPrinter *printer, const LifelineMessageTable *table, const void *message);

static bool print_fields(TextPrinter *printer, const LifelineMessageTable *table, const void *message) {
    bool printed = false;
    if (table->well_known == LIFELINE_WELL_KNOWN_ANY) {
        if (!print_content(printer, table, message, &printed)) return false;
    }
    for (uint32_t index = 0; index < table->field_count && !printed; index += 1) {
        const LifelineField *field = &table->fields[index];
        if (!lifeline_is_present(field, message) || print_field(printer, table, field, message)) continue;
        if (printer->failure->message == NULL) {
            printer->failure->message = table;
            printer->failure->field_number = field->number;
        }
        return false;
    }
    const ProtobufCMessage *base = message;
    return base->n_unknown_fields == 0 || print_others(printer, table, message);
}

// Prints the unknown fields of a message: its extensions by name, and all others by number.
static bool print_others(TextPrinter *printer, const LifelineMessageTable *table, const void *message) {
    LifelineContent content;
    LifelineExtensions extensions = {.count = 0};
    if (printer->options->types.find_extension == NULL) {
        return !printer->options->unknown_fields || print_all_unknown_fields(printer, table, message, &extensions);
    }
    LifelineStatus status = lifeline_open_extensions(
        &content, table, message, &printer->options->types, printer->depth, &printer->budget, &extensions);
    if (status != LIFELINE_OK) return cannot_print(printer, status);
    bool printed = true;
    for (size_t index = 0; printed && index < extensions.count; index += 1) {
        const LifelineMessageTable *extension = extensions.all[index].table;
        printed = print_field(printer, extension, extension->fields, extensions.all[index].value);
    }
    if (printed && printer->options->unknown_fields) {
        printed = print_all_unknown_fields(printer, table, message, &extensions);
    }
    lifeline_close_content(&content, &printer->budget);
    return printed;
}

bool lifeline_text_print(
    const LifelineMessageTable *table, const void *message, const LifelineTextPrintOptions *options,
    LifelineText *text, LifelineFailure *failure) {
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    TextPrinter printer = {
        .options = options, .text = text, .failure = failure, .depth = options->maximum_depth,
        .budget = lifeline_content_budget()};
    if (print_fields(&printer, table, message)) {
        // On one line, fields are separated by spaces.
        bool ends_in_space = options->in_one_line && text->count > 0 && text->memory[text->count - 1] == ' ';
        if (ends_in_space) text->count -= 1;
        return true;
    }
    if (failure->message == NULL) failure->message = table;
    return false;
}
