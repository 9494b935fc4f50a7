#define _GNU_SOURCE  // strtod_l
#include "numbers.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

// The text with a NUL after it: in `buffer`, or in memory that the caller frees.
enum { USUAL_NUMBER_LENGTH = 64 };

static char *terminated(const uint8_t *text, size_t count, char *buffer) {
    char *copy = count < USUAL_NUMBER_LENGTH ? buffer : malloc(count + 1);
    if (copy == NULL) return NULL;
    memcpy(copy, text, count);
    copy[count] = 0;
    return copy;
}

// The C locale, which has a point in decimal numbers. It is made once for the process.
static locale_t c_locale(void) {
    static locale_t locale;
    locale_t known = __atomic_load_n(&locale, __ATOMIC_ACQUIRE);
    if (known != NULL) return known;
    locale_t made = newlocale(LC_ALL_MASK, "C", NULL);
    if (made == NULL || __atomic_compare_exchange_n(&locale, &known, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return made;
    }
    freelocale(made);
    return known;
}

bool lifeline_read_double(const uint8_t *text, size_t count, double *value) {
    char buffer[USUAL_NUMBER_LENGTH];
    char *copy = terminated(text, count, buffer);
    locale_t locale = c_locale();
    bool can_read = copy != NULL && locale != NULL;
    if (can_read) *value = strtod_l(copy, NULL, locale);
    if (copy != buffer) free(copy);
    return can_read;
}

bool lifeline_read_float(const uint8_t *text, size_t count, float *value) {
    char buffer[USUAL_NUMBER_LENGTH];
    char *copy = terminated(text, count, buffer);
    locale_t locale = c_locale();
    bool can_read = copy != NULL && locale != NULL;
    if (can_read) *value = strtof_l(copy, NULL, locale);
    if (copy != buffer) free(copy);
    return can_read;
}
