// Prints messages as JSON. json_print_well_known.c has those of google.protobuf that have a form of their own.
#include "json_print.h"

#include "content.h"
#include "fields.h"
#include "json_blocks.h"
#include "utf8.h"

// MARK: Strings

// How many of the first bytes, up to 16, need no escape in a string; whether there are others than ASCII among
// them is added to `all_bits`.
static inline size_t plain_prefix(const uint8_t *bytes, size_t count, uint8_t *all_bits) {
    size_t length = count < 16 ? count : 16;
#if defined(LIFELINE_JSON_BLOCKS)
    if (count >= LIFELINE_JSON_BLOCK) {
        LifelineJSONBlock block = lifeline_json_block(bytes);
        uint64_t special = lifeline_json_special(block);
        *all_bits |= lifeline_json_is_ascii(block) ? 0 : 0x80;
        return special == 0 ? LIFELINE_JSON_BLOCK : lifeline_json_first(special);
    }
#endif
    for (size_t index = 0; index < length; index += 1) {
        if (!lifeline_json_is_plain(bytes[index])) return index;
        *all_bits |= bytes[index];
    }
    return length;
}

static uint8_t *write_escape(uint8_t *place, uint8_t byte) {
    static const char hexadecimal[] = "0123456789abcdef";
    *place++ = '\\';
    switch (byte) {
        case '"':
        case '\\': *place++ = byte; break;
        case '\b': *place++ = 'b'; break;
        case '\f': *place++ = 'f'; break;
        case '\n': *place++ = 'n'; break;
        case '\r': *place++ = 'r'; break;
        case '\t': *place++ = 't'; break;
        default:
            memcpy(place, "u00", 3);
            place[3] = (uint8_t)hexadecimal[byte >> 4];
            place[4] = (uint8_t)hexadecimal[byte & 15];
            place += 5;
    }
    return place;
}

bool lifeline_json_print_string(LifelineJSONPrinter *printer, const uint8_t *bytes, size_t count) {
    enum { LONGEST_ESCAPE = 6 };
    const uint8_t *start = bytes;
    const uint8_t *end = bytes + count;
    uint8_t all_bits = 0;
    // Room for the bytes that are not escaped, the quotes, and one escape. Each escape makes more room.
    uint8_t *place = lifeline_text_reserve(printer->text, count + 2 + LONGEST_ESCAPE);
    if (place == NULL) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
    *place++ = '"';
    while (bytes != end) {
        size_t length = plain_prefix(bytes, (size_t)(end - bytes), &all_bits);
        if (length == 16) {
            memcpy(place, bytes, 16);
        } else {
            memcpy(place, bytes, length);
        }
        place += length;
        bytes += length;
        if (length == 16 || bytes == end) continue;
        place = write_escape(place, *bytes++);
        printer->text->count = (size_t)(place - printer->text->memory);
        place = lifeline_text_reserve(printer->text, (size_t)(end - bytes) + 1 + LONGEST_ESCAPE);
        if (place == NULL) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
    }
    *place++ = '"';
    printer->text->count = (size_t)(place - printer->text->memory);
    if ((all_bits & 0x80) == 0 || lifeline_is_utf8(start, count)) return true;
    return lifeline_json_cannot_print(printer, LIFELINE_INVALID_UTF8);
}

static bool print_bytes(LifelineJSONPrinter *printer, ProtobufCBinaryData bytes) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (bytes.len > SIZE_MAX / 8) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
    uint8_t *place = lifeline_text_reserve(printer->text, bytes.len / 3 * 4 + 6);
    if (place == NULL) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
    const uint8_t *next = bytes.data;
    size_t left = bytes.len;
    *place++ = '"';
    for (; left >= 3; left -= 3, next += 3, place += 4) {
        uint32_t three = (uint32_t)next[0] << 16 | (uint32_t)next[1] << 8 | next[2];
        place[0] = (uint8_t)alphabet[three >> 18];
        place[1] = (uint8_t)alphabet[three >> 12 & 63];
        place[2] = (uint8_t)alphabet[three >> 6 & 63];
        place[3] = (uint8_t)alphabet[three & 63];
    }
    if (left > 0) {
        uint32_t rest = (uint32_t)next[0] << 16 | (left == 2 ? (uint32_t)next[1] << 8 : 0);
        place[0] = (uint8_t)alphabet[rest >> 18];
        place[1] = (uint8_t)alphabet[rest >> 12 & 63];
        place[2] = left == 2 ? (uint8_t)alphabet[rest >> 6 & 63] : '=';
        place[3] = '=';
        place += 4;
    }
    *place++ = '"';
    printer->text->count = (size_t)(place - printer->text->memory);
    return true;
}

// MARK: Numbers

static bool print_integer(LifelineJSONPrinter *printer, uint64_t number, bool is_negative, bool is_quoted) {
    uint8_t *start = lifeline_text_reserve(printer->text, LIFELINE_DIGITS + 3);
    if (start == NULL) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
    uint8_t *place = start;
    if (is_quoted) *place++ = '"';
    if (is_negative) {
        *place++ = '-';
        number = 0 - number;
    }
    place = lifeline_write_digits(place, number);
    if (is_quoted) *place++ = '"';
    printer->text->count += (size_t)(place - start);
    return true;
}

static bool print_literal(LifelineJSONPrinter *printer, const char *literal) {
    if (lifeline_text_append(printer->text, literal, strlen(literal))) return true;
    return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
}

// A double, or a float, in its shortest form.
static bool print_floating_point(LifelineJSONPrinter *printer, double number, bool is_float) {
    enum { LONGEST_NUMBER = 32 };
    if (number != number) return print_literal(printer, "\"NaN\"");
    if (number - number != 0) return print_literal(printer, number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    // Python, and C++ libprotobuf up to 3.21, take "-0" for an integer, whose zero has no sign.
    if (number == 0 && __builtin_signbit(number)) return print_literal(printer, "-0.0");
    uint8_t *place = lifeline_text_reserve(printer->text, LONGEST_NUMBER);
    if (place == NULL) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
    const LifelineJSONPrintOptions *options = printer->options;
    printer->text->count +=
        is_float ? options->write_float((float)number, place) : options->write_double(number, place);
    return true;
}

// MARK: Values

static bool print_enum(LifelineJSONPrinter *printer, const LifelineField *field, int32_t number) {
    const LifelineEnum *enumeration = field->enumeration;
    if (enumeration == NULL) return print_integer(printer, (uint64_t)(int64_t)number, number < 0, false);
    // Other numbers, which other implementations print as null too, are kept.
    if ((enumeration->flags & LIFELINE_ENUM_NULL_VALUE) != 0 && number == 0) return print_literal(printer, "null");
    size_t index = lifeline_enum_find(enumeration, number);
    if (printer->options->enums_as_numbers || index == enumeration->count) {
        return print_integer(printer, (uint64_t)(int64_t)number, number < 0, false);
    }
    LifelineName name = enumeration->names.names[index];
    const uint8_t *bytes = (const uint8_t *)enumeration->names.text + name.offset;
    return lifeline_json_print_string(printer, bytes, name.count);
}

bool lifeline_json_print_value(LifelineJSONPrinter *printer, const LifelineField *field, const void *value) {
    bool is_quoted = !printer->options->int64_as_numbers;
    switch (field->type) {
        case LIFELINE_TYPE_DOUBLE: {
            double number;
            memcpy(&number, value, sizeof number);
            return print_floating_point(printer, number, false);
        }
        case LIFELINE_TYPE_FLOAT: {
            float number;
            memcpy(&number, value, sizeof number);
            return print_floating_point(printer, number, true);
        }
        case LIFELINE_TYPE_INT64:
        case LIFELINE_TYPE_SFIXED64:
        case LIFELINE_TYPE_SINT64: {
            uint64_t bits = lifeline_load_scalar(value, 8);
            return print_integer(printer, bits, (int64_t)bits < 0, is_quoted);
        }
        case LIFELINE_TYPE_UINT64:
        case LIFELINE_TYPE_FIXED64:
            return print_integer(printer, lifeline_load_scalar(value, 8), false, is_quoted);
        case LIFELINE_TYPE_UINT32:
        case LIFELINE_TYPE_FIXED32:
            return print_integer(printer, lifeline_load32(value), false, false);
        case LIFELINE_TYPE_BOOL:
            return print_literal(printer, lifeline_load32(value) != 0 ? "true" : "false");
        case LIFELINE_TYPE_STRING: {
            ProtobufCBinaryData text = lifeline_load_bytes(value);
            return lifeline_json_print_string(printer, text.data, text.len);
        }
        case LIFELINE_TYPE_BYTES:
            return print_bytes(printer, lifeline_load_bytes(value));
        case LIFELINE_TYPE_MESSAGE:
            return lifeline_json_print_message(printer, field->message, lifeline_load_message(field, value));
        case LIFELINE_TYPE_ENUM:
            return print_enum(printer, field, (int32_t)lifeline_load32(value));
        default: {
            int32_t number = (int32_t)lifeline_load32(value);
            return print_integer(printer, (uint64_t)(int64_t)number, number < 0, false);
        }
    }
}

bool lifeline_json_print_elements(LifelineJSONPrinter *printer, const LifelineField *field, const void *message) {
    size_t count = lifeline_count(field, message);
    size_t size = lifeline_value_size(field);
    const uint8_t *elements = lifeline_load_pointer(lifeline_at(message, field->offset));
    if (!lifeline_json_print_byte(printer, '[')) return false;
    for (size_t index = 0; index < count; index += 1) {
        if (index > 0 && !lifeline_json_print_byte(printer, ',')) return false;
        if (!lifeline_json_print_value(printer, field, elements + index * size)) return false;
    }
    return lifeline_json_print_byte(printer, ']');
}

static bool print_key(LifelineJSONPrinter *printer, const LifelineField *key, const void *value) {
    // Numbers of 64 bits and text have quotes of their own.
    bool has_quotes = key->type == LIFELINE_TYPE_STRING
                      || (lifeline_value_size(key) == 8 && !printer->options->int64_as_numbers);
    if (has_quotes) return lifeline_json_print_value(printer, key, value);
    return lifeline_json_print_byte(printer, '"') && lifeline_json_print_value(printer, key, value)
           && lifeline_json_print_byte(printer, '"');
}

bool lifeline_json_print_map(LifelineJSONPrinter *printer, const LifelineField *field, const void *message) {
    const LifelineMessageTable *table = field->message;
    size_t count = lifeline_count(field, message);
    const uint8_t *entries = lifeline_load_pointer(lifeline_at(message, field->offset));
    if (!lifeline_json_print_byte(printer, '{')) return false;
    for (size_t index = 0; index < count; index += 1) {
        const void *entry = lifeline_load_message(field, entries + index * sizeof(void *));
        if (index > 0 && !lifeline_json_print_byte(printer, ',')) return false;
        if (!print_key(printer, &table->fields[0], lifeline_at(entry, table->fields[0].offset))) return false;
        if (!lifeline_json_print_byte(printer, ':')) return false;
        if (!lifeline_json_print_value(printer, &table->fields[1], lifeline_at(entry, table->fields[1].offset))) {
            return false;
        }
    }
    return lifeline_json_print_byte(printer, '}');
}

// MARK: Messages

static bool print_field(LifelineJSONPrinter *printer, const LifelineField *field, const void *message) {
    switch (field->presence) {
        case LIFELINE_PRESENCE_REPEATED: return lifeline_json_print_elements(printer, field, message);
        case LIFELINE_PRESENCE_MAP: return lifeline_json_print_map(printer, field, message);
        default: return lifeline_json_print_value(printer, field, lifeline_at(message, field->offset));
    }
}

static bool is_printed(const LifelineJSONPrinter *printer, const LifelineField *field, const void *message) {
    if (lifeline_is_present(field, message)) return true;
    return printer->options->absent_fields
           && (field->presence == LIFELINE_PRESENCE_IMPLICIT || lifeline_is_repeated(field));
}

static bool print_extensions(
    LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message, bool is_first);

bool lifeline_json_print_fields(
    LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message, bool is_first) {
    bool uses_proto_names = printer->options->proto_names;
    for (uint32_t index = 0; index < table->field_count; index += 1) {
        const LifelineField *field = &table->fields[index];
        if (!is_printed(printer, field, message)) continue;
        if (!is_first && !lifeline_json_print_byte(printer, ',')) return false;
        is_first = false;
        LifelineName name = table->names.names[2 * index + (uses_proto_names ? 0 : 1)];
        const uint8_t *bytes = (const uint8_t *)table->names.text + name.offset;
        bool printed = lifeline_json_print_string(printer, bytes, name.count) && lifeline_json_print_byte(printer, ':')
                       && print_field(printer, field, message);
        if (printed) continue;
        if (printer->failure->message == NULL) {
            printer->failure->message = table;
            printer->failure->field_number = field->number;
        }
        return false;
    }
    const ProtobufCMessage *base = message;
    bool may_have_extensions = printer->options->types.find_extension != NULL && base->n_unknown_fields > 0;
    return !may_have_extensions || print_extensions(printer, table, message, is_first);
}

// Prints the extensions of a message after its fields, each as the field of a separate message.
static bool print_extensions(
    LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message, bool is_first) {
    LifelineContent content;
    LifelineExtensions extensions;
    LifelineStatus status = lifeline_open_extensions(
        &content, table, message, &printer->options->types, printer->depth, &printer->budget, &extensions);
    if (status != LIFELINE_OK) return lifeline_json_cannot_print(printer, status);
    bool printed = true;
    for (size_t index = 0; printed && index < extensions.count; index += 1) {
        LifelineExtension extension = extensions.all[index];
        printed = lifeline_json_print_fields(printer, extension.table, extension.value, is_first && index == 0);
    }
    lifeline_close_content(&content, &printer->budget);
    return printed;
}

bool lifeline_json_print_message(
    LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message) {
    if (printer->depth == 0) return lifeline_json_cannot_print(printer, LIFELINE_TOO_DEEP);
    printer->depth -= 1;
    bool printed = table->well_known != LIFELINE_WELL_KNOWN_NONE
                       ? lifeline_json_print_well_known(printer, table, message)
                       : lifeline_json_print_byte(printer, '{')
                             && lifeline_json_print_fields(printer, table, message, true)
                             && lifeline_json_print_byte(printer, '}');
    printer->depth += 1;
    return printed;
}

bool lifeline_json_print(
    const LifelineMessageTable *table, const void *message, const LifelineJSONPrintOptions *options,
    LifelineText *text, LifelineFailure *failure) {
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    LifelineJSONPrinter printer = {
        .options = options, .text = text, .failure = failure, .depth = options->maximum_depth + 1,
        .budget = lifeline_content_budget()};
    if (lifeline_json_print_message(&printer, table, message)) return true;
    if (failure->message == NULL) failure->message = table;
    return false;
}
