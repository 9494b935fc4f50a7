// Parses the messages of google.protobuf that have a JSON form of their own.
#include "array.h"
#include "json_parse.h"
#include "times.h"

// The value of a field, by its place in the table: these messages are the same everywhere.
static void *field_value(const LifelineMessageTable *table, void *message, uint32_t index) {
    return lifeline_mutable_at(message, table->fields[index].offset);
}

// MARK: Times

// Reads `count` digits. Returns false when there are fewer.
static bool take_digits(LifelineJSONInput *input, int count, uint32_t *number) {
    *number = 0;
    for (; count > 0; count -= 1, input->next += 1) {
        if (input->next == input->end || *input->next < '0' || *input->next > '9') return false;
        *number = *number * 10 + (uint32_t)(*input->next - '0');
    }
    return true;
}

static bool take_byte(LifelineJSONInput *input, char byte) {
    if (input->next == input->end || *input->next != (uint8_t)byte) return false;
    input->next += 1;
    return true;
}

// Reads a point and one to nine digits, if there is one, as billionths.
static bool take_fraction(LifelineJSONInput *input, uint32_t *nanoseconds) {
    *nanoseconds = 0;
    if (!take_byte(input, '.')) return true;
    uint32_t unit = 100000000;
    uint32_t digit;
    if (!take_digits(input, 1, &digit)) return false;
    do {
        *nanoseconds += digit * unit;
        unit /= 10;
    } while (unit > 0 && take_digits(input, 1, &digit));
    return true;
}

// Reads "Z", or an offset such as "+01:00", in seconds.
static bool take_zone(LifelineJSONInput *input, int64_t *offset) {
    *offset = 0;
    if (take_byte(input, 'Z')) return true;
    bool is_west = take_byte(input, '-');
    if (!is_west && !take_byte(input, '+')) return false;
    uint32_t hours;
    uint32_t minutes;
    if (!take_digits(input, 2, &hours) || !take_byte(input, ':') || !take_digits(input, 2, &minutes)) return false;
    if (hours > 23 || minutes > 59) return false;
    *offset = (int64_t)(hours * 3600 + minutes * 60) * (is_west ? -1 : 1);
    return true;
}

// A time as RFC 3339 has it, with capital letters. LIFELINE_WRONG_KIND when it has another form.
static LifelineStatus read_timestamp(LifelineJSONInput *input, int64_t *seconds, int32_t *nanoseconds) {
    LifelineDate date;
    uint32_t hour;
    uint32_t minute;
    uint32_t second;
    uint32_t fraction;
    int64_t offset;
    int64_t day;
    bool is_formed = take_digits(input, 4, &date.year) && take_byte(input, '-') && take_digits(input, 2, &date.month)
                     && take_byte(input, '-') && take_digits(input, 2, &date.day) && take_byte(input, 'T')
                     && take_digits(input, 2, &hour) && take_byte(input, ':') && take_digits(input, 2, &minute)
                     && take_byte(input, ':') && take_digits(input, 2, &second) && take_fraction(input, &fraction)
                     && take_zone(input, &offset) && input->next == input->end;
    if (!is_formed) return LIFELINE_WRONG_KIND;
    if (hour > 23 || minute > 59 || second > 59 || !lifeline_day_of_date(date, &day)) return LIFELINE_OUT_OF_RANGE;
    *nanoseconds = (int32_t)fraction;
    *seconds = day * LIFELINE_SECONDS_OF_DAY + (int64_t)(hour * 3600 + minute * 60 + second) - offset;
    bool is_in_range = *seconds >= LIFELINE_FIRST_SECOND && *seconds <= LIFELINE_LAST_SECOND;
    return is_in_range ? LIFELINE_OK : LIFELINE_OUT_OF_RANGE;
}

// Seconds with up to nine digits after a point, and an "s". LIFELINE_WRONG_KIND if it has another form.
static LifelineStatus read_duration(LifelineJSONInput *input, int64_t *seconds, int32_t *nanoseconds) {
    bool is_negative = take_byte(input, '-');
    uint32_t digit;
    uint32_t fraction;
    *seconds = 0;
    if (!take_digits(input, 1, &digit)) return LIFELINE_WRONG_KIND;
    do {
        if (*seconds <= LIFELINE_LONGEST_DURATION) *seconds = *seconds * 10 + digit;
    } while (take_digits(input, 1, &digit));
    bool is_formed = take_fraction(input, &fraction) && take_byte(input, 's') && input->next == input->end;
    if (!is_formed) return LIFELINE_WRONG_KIND;
    if (*seconds > LIFELINE_LONGEST_DURATION) return LIFELINE_OUT_OF_RANGE;
    *nanoseconds = (int32_t)fraction;
    if (is_negative) {
        *seconds = -*seconds;
        *nanoseconds = -*nanoseconds;
    }
    return LIFELINE_OK;
}

typedef LifelineStatus ReadTime(LifelineJSONInput *input, int64_t *seconds, int32_t *nanoseconds);

// Reads a timestamp or a duration, which are both seconds and billionths.
static bool parse_time(
    LifelineJSONParser *parser, const LifelineMessageTable *table, void *message, ReadTime *read) {
    LifelineJSONString text;
    lifeline_json_skip_space(&parser->input);
    const uint8_t *place = parser->input.next;
    if (!lifeline_json_parse_string(parser, &text)) return false;
    LifelineJSONInput input = {.start = text.bytes, .next = text.bytes, .end = text.bytes + text.count};
    int64_t seconds;
    int32_t nanoseconds;
    LifelineStatus status = read(&input, &seconds, &nanoseconds);
    if (status != LIFELINE_OK) return lifeline_json_fail_at(parser, status, place);
    lifeline_store_scalar(field_value(table, message, 0), sizeof seconds, (uint64_t)seconds);
    lifeline_store_scalar(field_value(table, message, 1), sizeof nanoseconds, (uint32_t)nanoseconds);
    return true;
}

// MARK: Field masks

// Stores a path in snake case. One that already has underscores is malformed.
static bool append_path(
    LifelineJSONParser *parser, const LifelineField *paths, void *message, const uint8_t *path, size_t count) {
    size_t capitals = 0;
    for (size_t index = 0; index < count; index += 1) {
        if (path[index] == '_') return lifeline_json_fail(parser, LIFELINE_OUT_OF_RANGE);
        capitals += path[index] >= 'A' && path[index] <= 'Z' ? 1 : 0;
    }
    uint8_t *memory = lifeline_arena_allocate(parser->arena, count + capitals);
    if (memory == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
    uint8_t *place = memory;
    for (size_t index = 0; index < count; index += 1) {
        bool is_capital = path[index] >= 'A' && path[index] <= 'Z';
        if (is_capital) *place++ = '_';
        *place++ = (uint8_t)(is_capital ? path[index] - 'A' + 'a' : path[index]);
    }
    void *element = lifeline_append(parser->arena, message, paths, 1);
    if (element == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
    lifeline_store_bytes(element, memory, count + capitals);
    lifeline_set_count(paths, message, lifeline_count(paths, message) + 1);
    return true;
}

static bool parse_field_mask(LifelineJSONParser *parser, const LifelineMessageTable *table, void *message) {
    LifelineJSONString text;
    if (!lifeline_json_parse_string(parser, &text)) return false;
    const uint8_t *next = text.bytes;
    const uint8_t *end = text.bytes + text.count;
    bool is_last = next == end;
    while (!is_last) {
        const uint8_t *comma = next == end ? NULL : memchr(next, ',', (size_t)(end - next));
        is_last = comma == NULL;
        const uint8_t *path_end = is_last ? end : comma;
        if (!append_path(parser, &table->fields[0], message, next, (size_t)(path_end - next))) return false;
        next = is_last ? end : comma + 1;
    }
    return true;
}

// MARK: Values

// The field of google.protobuf.Value for the kind of value that begins with a byte; NULL when none does.
static const LifelineField *value_field(const LifelineMessageTable *table, uint8_t first) {
    uint32_t number = 2;  // number_value, if nothing else
    switch (first) {
        case 'n': number = 1; break;
        case '"': number = 3; break;
        case 't':
        case 'f': number = 4; break;
        case '{': number = 5; break;
        case '[': number = 6; break;
        default:
            if (first != '-' && (first < '0' || first > '9')) return NULL;
    }
    return lifeline_find_field(table, number);
}

static bool parse_any_value(LifelineJSONParser *parser, const LifelineMessageTable *table, void *message) {
    const LifelineField *field = value_field(table, lifeline_json_peek(&parser->input));
    if (field == NULL) return lifeline_json_fail(parser, LIFELINE_SYNTAX);
    void *value = lifeline_mutable_at(message, field->offset);
    if (lifeline_json_parse_value(parser, field, value) != LIFELINE_JSON_STORED) return false;
    lifeline_mark_present(field, message);
    return true;
}

bool lifeline_json_parse_well_known(LifelineJSONParser *parser, const LifelineMessageTable *table, void *message) {
    switch ((LifelineWellKnown)table->well_known) {
        case LIFELINE_WELL_KNOWN_ANY: return lifeline_json_parse_any(parser, table, message);
        case LIFELINE_WELL_KNOWN_TIMESTAMP: return parse_time(parser, table, message, read_timestamp);
        case LIFELINE_WELL_KNOWN_DURATION: return parse_time(parser, table, message, read_duration);
        case LIFELINE_WELL_KNOWN_FIELD_MASK: return parse_field_mask(parser, table, message);
        case LIFELINE_WELL_KNOWN_STRUCT: return lifeline_json_parse_map(parser, &table->fields[0], message);
        case LIFELINE_WELL_KNOWN_VALUE: return parse_any_value(parser, table, message);
        case LIFELINE_WELL_KNOWN_LIST_VALUE: return lifeline_json_parse_elements(parser, &table->fields[0], message);
        case LIFELINE_WELL_KNOWN_WRAPPER:
            return lifeline_json_parse_value(parser, &table->fields[0], field_value(table, message, 0))
                   == LIFELINE_JSON_STORED;
        case LIFELINE_WELL_KNOWN_NONE: break;
    }
    return true;
}
