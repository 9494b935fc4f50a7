// Prints the messages of google.protobuf that have a JSON form of their own.
#include "fields.h"
#include "content.h"
#include "json_print.h"
#include "times.h"

// The value of a field, by its place in the table: these messages are the same everywhere.
static const uint8_t *field_value(const LifelineMessageTable *table, const void *message, uint32_t index) {
    return lifeline_at(message, table->fields[index].offset);
}

// MARK: Times

// The digits after a decimal point: three, six or nine.
static uint8_t *write_fraction(uint8_t *place, uint32_t nanoseconds) {
    if (nanoseconds == 0) return place;
    *place++ = '.';
    if (nanoseconds % 1000000 == 0) return lifeline_write_padded(place, nanoseconds / 1000000, 3);
    if (nanoseconds % 1000 == 0) return lifeline_write_padded(place, nanoseconds / 1000, 6);
    return lifeline_write_padded(place, nanoseconds, 9);
}

static bool print_quoted(LifelineJSONPrinter *printer, const uint8_t *start, const uint8_t *end) {
    return lifeline_json_print_string(printer, start, (size_t)(end - start));
}

static bool print_timestamp(LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message) {
    int64_t seconds = (int64_t)lifeline_load_scalar(field_value(table, message, 0), 8);
    int32_t nanoseconds = (int32_t)lifeline_load32(field_value(table, message, 1));
    bool is_in_range = seconds >= LIFELINE_FIRST_SECOND && seconds <= LIFELINE_LAST_SECOND && nanoseconds >= 0
                       && nanoseconds <= 999999999;
    if (!is_in_range) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_RANGE);
    // Counted from the first one, none is negative.
    uint64_t passed = (uint64_t)(seconds - LIFELINE_FIRST_SECOND);
    uint32_t second_of_day = (uint32_t)(passed % LIFELINE_SECONDS_OF_DAY);
    int64_t first_day = LIFELINE_FIRST_SECOND / LIFELINE_SECONDS_OF_DAY;
    LifelineDate date = lifeline_date_of_day(first_day + (int64_t)(passed / LIFELINE_SECONDS_OF_DAY));
    uint8_t text[32];
    uint8_t *place = lifeline_write_padded(text, date.year, 4);
    *place++ = '-';
    place = lifeline_write_padded(place, date.month, 2);
    *place++ = '-';
    place = lifeline_write_padded(place, date.day, 2);
    *place++ = 'T';
    place = lifeline_write_padded(place, second_of_day / 3600, 2);
    *place++ = ':';
    place = lifeline_write_padded(place, second_of_day / 60 % 60, 2);
    *place++ = ':';
    place = lifeline_write_padded(place, second_of_day % 60, 2);
    place = write_fraction(place, (uint32_t)nanoseconds);
    *place++ = 'Z';
    return print_quoted(printer, text, place);
}

static bool print_duration(LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message) {
    int64_t seconds = (int64_t)lifeline_load_scalar(field_value(table, message, 0), 8);
    int32_t nanoseconds = (int32_t)lifeline_load32(field_value(table, message, 1));
    bool is_negative = seconds < 0 || nanoseconds < 0;
    bool is_in_range = seconds >= -LIFELINE_LONGEST_DURATION && seconds <= LIFELINE_LONGEST_DURATION
                       && nanoseconds >= -999999999 && nanoseconds <= 999999999
                       && !(is_negative && (seconds > 0 || nanoseconds > 0));
    if (!is_in_range) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_RANGE);
    uint8_t text[32];
    uint8_t *place = text;
    if (is_negative) *place++ = '-';
    place = lifeline_write_digits(place, (uint64_t)(is_negative ? -seconds : seconds));
    place = write_fraction(place, (uint32_t)(is_negative ? -nanoseconds : nanoseconds));
    *place++ = 's';
    return print_quoted(printer, text, place);
}

// MARK: Field masks

static bool is_lowercase(uint8_t byte) { return byte >= 'a' && byte <= 'z'; }

// Appends a path in camel case. False for one that would not be read as itself.
static bool append_path(LifelineJSONPrinter *printer, ProtobufCBinaryData path, LifelineText *mask) {
    if (path.len == 0) return true;
    uint8_t *place = lifeline_text_reserve(mask, path.len);
    if (place == NULL) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
    uint8_t *start = place;
    for (size_t index = 0; index < path.len; index += 1) {
        uint8_t byte = path.data[index];
        bool is_capital = byte >= 'A' && byte <= 'Z';
        if (byte == '_' && index + 1 < path.len && is_lowercase(path.data[index + 1])) {
            index += 1;
            *place++ = (uint8_t)(path.data[index] - 'a' + 'A');
        } else if (byte == '_' || byte == ',' || is_capital) {
            return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_RANGE);
        } else {
            *place++ = byte;
        }
    }
    mask->count += (size_t)(place - start);
    return true;
}

static bool append_paths(
    LifelineJSONPrinter *printer, const LifelineField *paths, const void *message, LifelineText *mask) {
    const uint8_t *elements = lifeline_load_pointer(lifeline_at(message, paths->offset));
    size_t count = lifeline_count(paths, message);
    for (size_t index = 0; index < count; index += 1) {
        if (index > 0 && !lifeline_text_append_byte(mask, ',')) {
            return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
        }
        ProtobufCBinaryData path = lifeline_load_bytes(elements + index * sizeof(ProtobufCBinaryData));
        if (!append_path(printer, path, mask)) return false;
    }
    return true;
}

static bool print_field_mask(LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message) {
    LifelineText mask;
    lifeline_text_init(&mask, NULL, 0);
    // Paths may hold any text, such as "*": so they are escaped as a string is.
    bool printed = append_paths(printer, &table->fields[0], message, &mask)
                   && lifeline_json_print_string(printer, mask.memory, mask.count);
    lifeline_text_destroy(&mask);
    return printed;
}

// MARK: Values

// The one that is set; null when none is, or null_value, with any number.
static bool print_any_value(LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message) {
    for (uint32_t index = 0; index < table->field_count; index += 1) {
        const LifelineField *field = &table->fields[index];
        if (field->type == LIFELINE_TYPE_ENUM || !lifeline_is_present(field, message)) continue;
        const uint8_t *value = lifeline_at(message, field->offset);
        if (field->type == LIFELINE_TYPE_DOUBLE) {
            double number;
            memcpy(&number, value, sizeof number);
            // In quotes it would be read as a string.
            if (number - number != 0) return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_RANGE);
        }
        return lifeline_json_print_value(printer, field, value);
    }
    return lifeline_text_append(printer->text, "null", 4)
           || lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
}

// MARK: Any

static bool print_content(
    LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *content, ProtobufCBinaryData url) {
    static const char type_key[] = "{\"@type\":";
    static const char value_key[] = ",\"value\":";
    bool began = lifeline_text_append(printer->text, type_key, sizeof type_key - 1)
                 || lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
    if (!began || !lifeline_json_print_string(printer, url.data, url.len)) return false;
    if (table->well_known == LIFELINE_WELL_KNOWN_NONE) {
        if (!lifeline_json_print_fields(printer, table, content, false)) return false;
    } else {
        bool named = lifeline_text_append(printer->text, value_key, sizeof value_key - 1)
                     || lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
        if (!named || !lifeline_json_print_message(printer, table, content)) return false;
    }
    return lifeline_json_print_byte(printer, '}');
}

static bool print_any(LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message) {
    ProtobufCBinaryData url = lifeline_load_bytes(field_value(table, message, 0));
    ProtobufCBinaryData bytes = lifeline_load_bytes(field_value(table, message, 1));
    if (url.len == 0 && bytes.len == 0) {
        return lifeline_json_print_byte(printer, '{') && lifeline_json_print_byte(printer, '}');
    }
    const LifelineMessageTable *content_table = lifeline_find_by_url(&printer->options->types, url.data, url.len);
    if (content_table == NULL) return lifeline_json_cannot_print(printer, LIFELINE_UNKNOWN_MESSAGE);
    LifelineContent content;
    const void *content_message;
    LifelineStatus status = lifeline_open_message(
        &content, content_table, bytes.data, bytes.len, printer->depth, &printer->budget, &content_message);
    if (status != LIFELINE_OK) return lifeline_json_cannot_print(printer, status);
    bool printed = print_content(printer, content_table, content_message, url);
    lifeline_close_content(&content, &printer->budget);
    return printed;
}

bool lifeline_json_print_well_known(
    LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message) {
    switch ((LifelineWellKnown)table->well_known) {
        case LIFELINE_WELL_KNOWN_ANY: return print_any(printer, table, message);
        case LIFELINE_WELL_KNOWN_TIMESTAMP: return print_timestamp(printer, table, message);
        case LIFELINE_WELL_KNOWN_DURATION: return print_duration(printer, table, message);
        case LIFELINE_WELL_KNOWN_FIELD_MASK: return print_field_mask(printer, table, message);
        case LIFELINE_WELL_KNOWN_STRUCT: return lifeline_json_print_map(printer, &table->fields[0], message);
        case LIFELINE_WELL_KNOWN_VALUE: return print_any_value(printer, table, message);
        case LIFELINE_WELL_KNOWN_LIST_VALUE: return lifeline_json_print_elements(printer, &table->fields[0], message);
        case LIFELINE_WELL_KNOWN_WRAPPER:
            return lifeline_json_print_value(printer, &table->fields[0], field_value(table, message, 0));
        case LIFELINE_WELL_KNOWN_NONE: break;
    }
    return true;
}
