#include "text_format_scan.h"

#include "utf8.h"

static bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

static bool is_letter(uint8_t byte) { return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'; }

void lifeline_text_skip_space(LifelineTextInput *input) {
    for (; input->next != input->end; input->next += 1) {
        uint8_t byte = *input->next;
        if (byte == '#') {
            while (input->next != input->end && *input->next != '\n' && *input->next != 0) input->next += 1;
            if (input->next == input->end || *input->next == 0) return;
        } else if (byte != ' ' && (byte < '\t' || byte > '\r')) {
            return;
        }
    }
}

// MARK: Words and numbers

bool lifeline_text_is_word(uint8_t byte) { return is_letter(byte) || is_digit(byte) || byte == '_'; }

bool lifeline_text_read_word(LifelineTextInput *input, LifelineTextToken *token) {
    lifeline_text_skip_space(input);
    const uint8_t *start = input->next;
    const uint8_t *next = start;
    while (next != input->end && lifeline_text_is_word(*next)) next += 1;
    if (next == start) return false;
    *token = (LifelineTextToken){.bytes = start, .count = (size_t)(next - start)};
    input->next = next;
    return true;
}

bool lifeline_text_read_name(LifelineTextInput *input, LifelineTextToken *token) {
    uint64_t number;
    if (!lifeline_text_read_word(input, token)) return false;
    return !is_digit(*token->bytes) || lifeline_text_integer(*token, &number) != LIFELINE_TEXT_NO_INTEGER;
}

bool lifeline_text_read_number(LifelineTextInput *input, LifelineTextToken *token) {
    lifeline_text_skip_space(input);
    const uint8_t *start = input->next;
    const uint8_t *next = start;
    for (; next != input->end; next += 1) {
        bool is_sign = (*next == '+' || *next == '-') && next != start && (next[-1] | 0x20) == 'e';
        if (!is_sign && *next != '.' && !lifeline_text_is_word(*next)) break;
    }
    if (next == start) return false;
    *token = (LifelineTextToken){.bytes = start, .count = (size_t)(next - start)};
    input->next = next;
    return true;
}

static int digit_of(uint8_t byte) {
    if (is_digit(byte)) return byte - '0';
    return is_letter(byte) ? (byte | 0x20) - 'a' + 10 : 36;
}

LifelineTextIntegerKind lifeline_text_integer(LifelineTextToken token, uint64_t *number) {
    uint64_t base = 10;
    size_t index = 0;
    if (token.count > 1 && token.bytes[0] == '0') {
        bool is_hexadecimal = (token.bytes[1] | 0x20) == 'x';
        base = is_hexadecimal ? 16 : 8;
        index = is_hexadecimal ? 2 : 1;
        if (index == token.count) return LIFELINE_TEXT_NO_INTEGER;
    }
    bool fits = true;
    *number = 0;
    for (; index < token.count; index += 1) {
        uint64_t digit = (uint64_t)digit_of(token.bytes[index]);
        if (digit >= base) return LIFELINE_TEXT_NO_INTEGER;
        fits = fits && *number <= (UINT64_MAX - digit) / base;
        *number = *number * base + digit;
    }
    return fits ? LIFELINE_TEXT_INTEGER : LIFELINE_TEXT_TOO_LARGE;
}

static size_t count_digits(LifelineTextToken token, size_t from) {
    size_t index = from;
    while (index < token.count && is_digit(token.bytes[index])) index += 1;
    return index - from;
}

bool lifeline_text_is_decimal(LifelineTextToken *token) {
    size_t whole = count_digits(*token, 0);
    size_t index = whole;
    size_t fraction = 0;
    if (index < token->count && token->bytes[index] == '.') {
        fraction = count_digits(*token, index + 1);
        index += 1 + fraction;
    }
    if (whole + fraction == 0) return false;
    if (index < token->count && (token->bytes[index] | 0x20) == 'e') {
        index += 1;
        if (index < token->count && (token->bytes[index] == '+' || token->bytes[index] == '-')) index += 1;
        size_t digits = count_digits(*token, index);
        if (digits == 0) return false;
        index += digits;
    }
    // A number that begins with a zero would be octal.
    if (whole > 1 && token->bytes[0] == '0') return false;
    size_t count = index;
    if (index < token->count && (token->bytes[index] | 0x20) == 'f') index += 1;
    if (index != token->count) return false;
    token->count = count;
    return true;
}

static bool is_in_any_case(LifelineTextToken token, const char *word) {
    if (token.count != strlen(word)) return false;
    for (size_t index = 0; index < token.count; index += 1) {
        if ((token.bytes[index] | 0x20) != (uint8_t)word[index]) return false;
    }
    return true;
}

bool lifeline_text_is_infinity(LifelineTextToken token) {
    return is_in_any_case(token, "inf") || is_in_any_case(token, "infinity") || is_in_any_case(token, "inff")
           || is_in_any_case(token, "infinityf");
}

bool lifeline_text_is_nan(LifelineTextToken token) {
    return is_in_any_case(token, "nan") || is_in_any_case(token, "nanf");
}

// MARK: URLs

static bool is_in_url(uint8_t byte) {
    return lifeline_text_is_word(byte) || (byte != 0 && strchr("/.-~%!$&()*+,;=", byte) != NULL);
}

static bool is_joint(uint8_t byte) { return byte == '.' || byte == '/'; }

// Reads parts with slashes between them, of which the last one is the name of a type: words with dots between them.
static bool read_url(LifelineTextInput *input, bool may_have_spaces, LifelineTextToken *token) {
    const uint8_t *start = input->next;
    const uint8_t *end = start;  // of all that was read
    uint8_t last = '/';
    bool is_name = true;  // this part so far
    int escape = 0;       // how many digits are still expected after a percent sign
    while (input->next != input->end && is_in_url(*input->next)) {
        uint8_t byte = *input->next;
        bool is_apart = input->next != end;
        if (is_apart && !is_joint(last) && !is_joint(byte)) return false;
        if (escape > 0 && digit_of(byte) >= 16) return false;
        escape = byte == '%' ? 2 : escape > 0 ? escape - 1 : 0;
        if (byte == '/') {
            if (end == start) return false;
            is_name = true;
        } else if (byte == '.') {
            is_name = is_name && !is_joint(last);
        } else {
            is_name = is_name && lifeline_text_is_word(byte) && !(is_joint(last) && is_digit(byte));
        }
        last = byte;
        input->next += 1;
        end = input->next;
        if (may_have_spaces) lifeline_text_skip_space(input);
    }
    *token = (LifelineTextToken){.bytes = start, .count = (size_t)(end - start)};
    return is_name && !is_joint(last);
}

bool lifeline_text_read_url(LifelineTextInput *input, LifelineTextToken *token) {
    lifeline_text_skip_space(input);
    return read_url(input, true, token) && lifeline_text_take(input, ']');
}

bool lifeline_text_is_url(LifelineTextToken token) {
    LifelineTextInput input = {.next = token.bytes, .end = token.bytes + token.count};
    return read_url(&input, false, &token) && input.next == input.end;
}

size_t lifeline_text_copy_url(LifelineTextToken token, uint8_t *memory) {
    LifelineTextInput input = {.next = token.bytes, .end = token.bytes + token.count};
    size_t count = 0;
    for (; input.next != input.end; lifeline_text_skip_space(&input)) memory[count++] = *input.next++;
    return count;
}

// MARK: Literals

// Reads up to `most` digits of a base. Returns how many.
static int read_digits(LifelineTextInput *input, int most, uint32_t base, uint32_t *number) {
    int count = 0;
    *number = 0;
    for (; count < most && input->next != input->end; count += 1) {
        uint32_t digit = (uint32_t)digit_of(*input->next);
        if (digit >= base) break;
        *number = *number * base + digit;
        input->next += 1;
    }
    return count;
}

// Reads four or eight hexadecimal digits of a scalar; two escapes may have the two halves of a surrogate pair.
static bool read_scalar(LifelineTextInput *input, int digits, uint32_t *scalar) {
    if (read_digits(input, digits, 16, scalar) != digits || *scalar > 0x10FFFF) return false;
    if (*scalar < 0xD800 || *scalar > 0xDFFF) return true;
    uint32_t high = *scalar;
    uint32_t low;
    bool is_pair = high < 0xDC00 && input->end - input->next > 2 && input->next[0] == '\\' && input->next[1] == 'u';
    if (!is_pair) return false;
    input->next += 2;
    if (read_digits(input, 4, 16, &low) != 4 || low < 0xDC00 || low > 0xDFFF) return false;
    *scalar = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

// Reads the escape after a backslash and writes its value, which is never longer. NULL if it is malformed.
static uint8_t *read_escape(LifelineTextInput *input, uint8_t *place) {
    static const char letters[] = "abfnrtv?\\'\"";
    static const char bytes[] = "\a\b\f\n\r\t\v?\\'\"";
    if (input->next == input->end) return NULL;
    uint8_t letter = *input->next;
    const char *simple = letter == 0 ? NULL : strchr(letters, letter);
    uint32_t number;
    if (simple != NULL) {
        input->next += 1;
        *place++ = (uint8_t)bytes[simple - letters];
        return place;
    }
    if (letter >= '0' && letter <= '7') {
        read_digits(input, 3, 8, &number);
        if (number > 0xFF) return NULL;
        *place++ = (uint8_t)number;
        return place;
    }
    input->next += 1;
    switch (letter) {
        case 'x':
            if (read_digits(input, 2, 16, &number) == 0) return NULL;
            *place++ = (uint8_t)number;
            return place;
        case 'u': return read_scalar(input, 4, &number) ? lifeline_write_scalar(place, number) : NULL;
        case 'U': return read_scalar(input, 8, &number) ? lifeline_write_scalar(place, number) : NULL;
        default: return NULL;
    }
}

bool lifeline_text_skip_literal(LifelineTextInput *input, size_t *length) {
    uint8_t scratch[8];
    uint8_t quote = lifeline_text_peek(input);
    input->next += 1;
    const uint8_t *start = input->next;
    while (input->next != input->end && *input->next != quote) {
        uint8_t byte = *input->next;
        if (byte == '\n' || byte == 0) return false;
        input->next += 1;
        if (byte == '\\' && read_escape(input, scratch) == NULL) return false;
    }
    if (input->next == input->end) return false;
    *length = (size_t)(input->next - start);
    input->next += 1;
    return true;
}

bool lifeline_text_read_literal(LifelineTextInput *input, uint8_t *memory, size_t *count) {
    uint8_t quote = lifeline_text_peek(input);
    uint8_t *place = memory + *count;
    input->next += 1;
    while (input->next != input->end && *input->next != quote) {
        uint8_t byte = *input->next++;
        if (byte != '\\') {
            *place++ = byte;
            continue;
        }
        place = read_escape(input, place);
        if (place == NULL) return false;
    }
    if (input->next == input->end) return false;
    input->next += 1;
    *count = (size_t)(place - memory);
    return true;
}

// MARK: Unknown values

static LifelineStatus skip_message(LifelineTextInput *input, uint32_t depth);

static bool is_number(LifelineTextToken token) {
    uint64_t number;
    return lifeline_text_integer(token, &number) != LIFELINE_TEXT_NO_INTEGER || lifeline_text_is_decimal(&token)
           || lifeline_text_is_infinity(token) || lifeline_text_is_nan(token);
}

static LifelineStatus skip_scalar(LifelineTextInput *input) {
    LifelineTextToken token;
    size_t length;
    uint8_t first = lifeline_text_peek(input);
    if (first != '"' && first != '\'') {
        bool is_negative = lifeline_text_take(input, '-');
        first = lifeline_text_peek(input);
        bool may_be_word = !is_negative && (is_letter(first) || first == '_');
        bool is_read = may_be_word ? lifeline_text_read_word(input, &token)
                                   : lifeline_text_read_number(input, &token) && is_number(token);
        return is_read ? LIFELINE_OK : LIFELINE_SYNTAX;
    }
    do {
        if (!lifeline_text_skip_literal(input, &length)) return LIFELINE_SYNTAX;
        first = lifeline_text_peek(input);
    } while (first == '"' || first == '\'');
    return LIFELINE_OK;
}

static LifelineStatus skip_element(LifelineTextInput *input, bool may_be_scalar, uint32_t depth) {
    uint8_t first = lifeline_text_peek(input);
    if (first == '{' || first == '<') return skip_message(input, depth);
    return may_be_scalar ? skip_scalar(input) : LIFELINE_SYNTAX;
}

LifelineStatus lifeline_text_skip_value(LifelineTextInput *input, uint32_t depth) {
    // Without a colon there can only be messages.
    bool may_be_scalar = lifeline_text_take(input, ':');
    if (!lifeline_text_take(input, '[')) return skip_element(input, may_be_scalar, depth);
    if (lifeline_text_take(input, ']')) return LIFELINE_OK;
    do {
        LifelineStatus status = skip_element(input, may_be_scalar, depth);
        if (status != LIFELINE_OK) return status;
    } while (lifeline_text_take(input, ','));
    return lifeline_text_take(input, ']') ? LIFELINE_OK : LIFELINE_SYNTAX;
}

static LifelineStatus skip_message(LifelineTextInput *input, uint32_t depth) {
    if (depth == 0) return LIFELINE_TOO_DEEP;
    char end = lifeline_text_take(input, '<') ? '>' : '}';
    if (end == '}') lifeline_text_take(input, '{');
    LifelineTextToken name;
    while (!lifeline_text_take(input, end)) {
        bool has_name = lifeline_text_take(input, '[') ? lifeline_text_read_url(input, &name)
                                                       : lifeline_text_read_name(input, &name);
        LifelineStatus status = has_name ? lifeline_text_skip_value(input, depth - 1) : LIFELINE_SYNTAX;
        if (status != LIFELINE_OK) return status;
        if (!lifeline_text_take(input, ',')) lifeline_text_take(input, ';');
    }
    return LIFELINE_OK;
}
