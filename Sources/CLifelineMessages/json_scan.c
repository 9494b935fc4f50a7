#include "json_scan.h"

#include "numbers.h"
#include "utf8.h"

void lifeline_json_skip_spaces(LifelineJSONInput *input) {
    for (; input->next != input->end; input->next += 1) {
        uint8_t byte = *input->next;
        if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') return;
    }
}

// MARK: Strings

static int hexadecimal_digit(uint8_t byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    uint8_t letter = byte | 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// Four hexadecimal digits at `next`; -1 if there are none.
static int32_t code_unit(const uint8_t *next, const uint8_t *end) {
    if (end - next < 4) return -1;
    int32_t unit = 0;
    for (int index = 0; index < 4; index += 1) {
        int digit = hexadecimal_digit(next[index]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

// Reads the escape after a backslash. Returns the scalar, or -1 if it is malformed, which includes half of a surrogate
// pair.
static int32_t read_escape(const uint8_t **next, const uint8_t *end) {
    if (*next == end) return -1;
    uint8_t letter = *(*next)++;
    switch (letter) {
        case '"':
        case '\\':
        case '/': return letter;
        case 'b': return '\b';
        case 'f': return '\f';
        case 'n': return '\n';
        case 'r': return '\r';
        case 't': return '\t';
        case 'u': break;
        default: return -1;
    }
    int32_t high = code_unit(*next, end);
    if (high < 0) return -1;
    *next += 4;
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || end - *next < 6 || (*next)[0] != '\\' || (*next)[1] != 'u') return -1;
    int32_t low = code_unit(*next + 2, end);
    if (low < 0xDC00 || low > 0xDFFF) return -1;
    *next += 6;
    return 0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00);
}

bool lifeline_json_read_any_string(LifelineJSONInput *input, LifelineJSONString *string) {
    const uint8_t *start = input->next + 1;
    const uint8_t *next = start;
    bool is_ascii = true;
    string->has_escapes = false;
    while (true) {
        next = lifeline_json_skip_plain(input->start, next, input->end, &is_ascii);
        input->next = next;
        if (next == input->end || *next < 0x20) return false;
        if (*next == '"') break;
        next += 1;
        if (read_escape(&next, input->end) < 0) return false;
        string->has_escapes = true;
    }
    string->bytes = start;
    string->count = (size_t)(next - start);
    input->next = start;
    if (!is_ascii && !lifeline_is_utf8(start, string->count)) return false;
    input->next = next + 1;
    return true;
}

size_t lifeline_json_unescape(LifelineJSONString string, uint8_t *place) {
    uint8_t *start = place;
    const uint8_t *next = string.bytes;
    const uint8_t *end = next + string.count;
    bool is_ascii;
    while (next != end) {
        const uint8_t *special = lifeline_json_skip_plain(string.bytes, next, end, &is_ascii);
        size_t count = (size_t)(special - next);
        memcpy(place, next, count);
        place += count;
        next = special;
        if (next == end) break;
        next += 1;
        place = lifeline_write_scalar(place, (uint32_t)read_escape(&next, end));
    }
    return (size_t)(place - start);
}

// MARK: Numbers

static bool is_digit(const LifelineJSONInput *input) {
    return input->next != input->end && (uint8_t)(*input->next - '0') < 10;
}

// Adds digits to a number. Each one after the decimal point, and each one that is left out, changes the exponent.
static bool read_digits(LifelineJSONInput *input, LifelineJSONNumber *number, bool is_fraction) {
    const uint8_t *start = input->next;
    const uint8_t *next = start;
    uint64_t digits = number->digits;
    // Nineteen digits always fit.
    for (; next != input->end && digits < UINT64_C(1000000000000000000); next += 1) {
        uint8_t digit = (uint8_t)(*next - '0');
        if (digit > 9) break;
        digits = digits * 10 + digit;
    }
    number->digits = digits;
    if (is_fraction) number->exponent -= next - start;
    input->next = next;
    for (; is_digit(input); input->next += 1) {
        uint64_t digit = (uint64_t)(*input->next - '0');
        // A twentieth often does, too.
        if (!number->is_full && number->digits <= (UINT64_MAX - digit) / 10) {
            number->digits = number->digits * 10 + digit;
            number->exponent -= is_fraction ? 1 : 0;
            continue;
        }
        // Zeros only change the exponent.
        number->is_full = true;
        if (digit != 0) number->is_exact = false;
        number->exponent += is_fraction ? 0 : 1;
    }
    return input->next != start;
}

static bool read_exponent(LifelineJSONInput *input, int64_t *exponent) {
    bool is_negative = false;
    if (input->next != input->end && (*input->next == '+' || *input->next == '-')) {
        is_negative = *input->next == '-';
        input->next += 1;
    }
    if (!is_digit(input)) return false;
    for (; is_digit(input); input->next += 1) {
        // Larger ones are all the same: zero, or too large.
        if (*exponent < 100000000) *exponent = *exponent * 10 + (*input->next - '0');
    }
    if (is_negative) *exponent = -*exponent;
    return true;
}

bool lifeline_json_read_number(LifelineJSONInput *input, LifelineJSONNumber *number) {
    *number = (LifelineJSONNumber){.is_exact = true};
    lifeline_json_skip_space(input);
    if (input->next != input->end && *input->next == '-') {
        number->is_negative = true;
        input->next += 1;
    }
    bool is_zero_first = is_digit(input) && *input->next == '0';
    const uint8_t *first = input->next;
    if (!read_digits(input, number, false)) return false;
    if (is_zero_first && input->next != first + 1) {
        input->next = first + 1;
        return false;
    }
    if (input->next != input->end && *input->next == '.') {
        input->next += 1;
        if (!read_digits(input, number, true)) return false;
    }
    if (input->next == input->end || (*input->next | 0x20) != 'e') return true;
    input->next += 1;
    int64_t exponent = 0;
    if (!read_exponent(input, &exponent)) return false;
    number->exponent += exponent;
    return true;
}

bool lifeline_json_integer(LifelineJSONNumber number, uint64_t *absolute) {
    *absolute = number.digits;
    if (number.digits == 0) return number.is_exact;
    if (!number.is_exact) return false;
    for (; number.exponent < 0; number.exponent += 1) {
        if (*absolute % 10 != 0) return false;
        *absolute /= 10;
    }
    for (; number.exponent > 0; number.exponent -= 1) {
        if (*absolute > UINT64_MAX / 10) return false;
        *absolute *= 10;
    }
    return true;
}

bool lifeline_json_double(LifelineJSONNumber number, const uint8_t *text, size_t count, double *value) {
    // Both are exact, so that the one operation rounds once (Clinger 1990).
    static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (number.is_exact && number.digits <= (UINT64_C(1) << 53) && number.exponent >= -22 && number.exponent <= 22) {
        double digits = (double)number.digits;
        *value = number.exponent < 0 ? digits / powers_of_ten[-number.exponent]
                                     : digits * powers_of_ten[number.exponent];
        if (number.is_negative) *value = -*value;
        return true;
    }
    return lifeline_read_double(text, count, value) && *value - *value == 0;
}

bool lifeline_json_float(LifelineJSONNumber number, const uint8_t *text, size_t count, float *value) {
    // Few digits are read without rounding, so that rounding them to a float is the only one.
    double exact = 0;
    if (number.is_exact && number.digits <= (UINT64_C(1) << 53) && number.exponent == 0) {
        if (!lifeline_json_double(number, text, count, &exact)) return false;
        *value = (float)exact;
        return *value - *value == 0;
    }
    return lifeline_read_float(text, count, value) && *value - *value == 0;
}
