// Shared by the files that print JSON.
#ifndef LIFELINE_JSON_PRINT_H
#define LIFELINE_JSON_PRINT_H

#include "content.h"
#include "lifeline_json.h"
#include "text.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// One call of lifeline_json_print.
typedef struct LifelineJSONPrinter {
    const LifelineJSONPrintOptions *options;
    LifelineText *text;
    LifelineFailure *failure;
    uint32_t depth;  // how many messages may still be nested
    LifelineContentBudget budget;
} LifelineJSONPrinter;

// Returns false. lifeline_json_print_fields adds the field.
static inline bool lifeline_json_cannot_print(LifelineJSONPrinter *printer, LifelineStatus status) {
    printer->failure->status = status;
    return false;
}

static inline bool lifeline_json_print_byte(LifelineJSONPrinter *printer, char byte) {
    if (lifeline_text_append_byte(printer->text, byte)) return true;
    return lifeline_json_cannot_print(printer, LIFELINE_OUT_OF_MEMORY);
}

// A string in quotes, with escapes.
bool lifeline_json_print_string(LifelineJSONPrinter *printer, const uint8_t *_Nullable bytes, size_t count);

// A singular value, or one element.
bool lifeline_json_print_value(LifelineJSONPrinter *printer, const LifelineField *field, const void *value);

// The elements of a repeated field.
bool lifeline_json_print_elements(LifelineJSONPrinter *printer, const LifelineField *field, const void *message);

bool lifeline_json_print_map(LifelineJSONPrinter *printer, const LifelineField *field, const void *message);

bool lifeline_json_print_message(LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message);

// The fields of a message without the braces. Unless `is_first`, there is something before them.
bool lifeline_json_print_fields(
    LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message, bool is_first);

// A message that has a form of its own.
bool lifeline_json_print_well_known(
    LifelineJSONPrinter *printer, const LifelineMessageTable *table, const void *message);

LIFELINE_ASSUME_NONNULL_END

#endif
