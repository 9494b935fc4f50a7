// Looks for absent `required` fields. Messages whose types reach none are not entered.
#include "fields.h"
#include "lifeline_message.h"

static bool missing_in_submessages(const LifelineField *field, const void *message, LifelineFailure *failure) {
    size_t count;
    const uint8_t *values = lifeline_values(field, message, &count);
    for (size_t index = 0; index < count; index += 1) {
        const void *submessage = lifeline_load_message(field, values + index * sizeof(void *));
        if (lifeline_message_missing_required(field->message, submessage, failure)) return true;
    }
    return false;
}

bool lifeline_message_missing_required(
    const LifelineMessageTable *table, const void *message, LifelineFailure *failure) {
    if ((table->flags & LIFELINE_MESSAGE_HAS_REQUIRED) == 0) return false;
    for (uint32_t index = 0; index < table->field_count; index += 1) {
        const LifelineField *field = &table->fields[index];
        if (lifeline_is_present(field, message)) {
            if (field->message == NULL) continue;
            if (missing_in_submessages(field, message, failure)) return true;
        } else if ((field->flags & LIFELINE_FIELD_REQUIRED) != 0) {
            *failure = (LifelineFailure){
                .status = LIFELINE_MISSING_REQUIRED, .field_number = field->number, .message = table};
            return true;
        }
    }
    return false;
}
