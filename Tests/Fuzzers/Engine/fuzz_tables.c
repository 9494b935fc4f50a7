// The message types that an input can choose, and the known extensions. New types go to the end, because the corpus
// names them by their position here.
#include "fuzz_input.h"
#include "google/protobuf/any.lifeline.h"
#include "google/protobuf/duration.lifeline.h"
#include "google/protobuf/field_mask.lifeline.h"
#include "google/protobuf/struct.lifeline.h"
#include "google/protobuf/timestamp.lifeline.h"
#include "google/protobuf/wrappers.lifeline.h"
#include "test/imports/recursion.lifeline.h"
#include "test/imports/user.lifeline.h"
#include "test/proto2/defaults.lifeline.h"
#include "test/proto2/enums.lifeline.h"
#include "test/proto2/extending.lifeline.h"
#include "test/proto2/extensions.lifeline.h"
#include "test/proto2/groups.lifeline.h"
#include "test/scalars/many.lifeline.h"
#include "test/scalars/proto2.lifeline.h"
#include "test/scalars/proto3.lifeline.h"

const LifelineMessageTable *const fuzz_tables[] = {
    &test__scalars__proto3__singular__table,        // 0
    &test__scalars__proto3__optional__table,        // 1
    &test__scalars__proto3__packed__table,          // 2
    &test__scalars__proto3__unpacked__table,        // 3
    &test__scalars__proto3__choice__table,          // 4
    &test__scalars__proto3__map_values__table,      // 5
    &test__scalars__proto3__map_keys__table,        // 6
    &test__scalars__proto2__singular__table,        // 7
    &test__scalars__proto2__required__table,        // 8
    &test__scalars__proto2__required_below__table,  // 9
    &test__scalars__proto2__unpacked__table,        // 10
    &test__scalars__proto2__packed__table,          // 11
    &test__scalars__proto2__choice__table,          // 12
    &test__scalars__proto2__maps__table,            // 13
    &test__scalars__many__many_fields__table,       // 14
    &test__proto2__defaults__table,                 // 15
    &test__proto2__enums__table,                    // 16
    &test__proto2__extendable__table,               // 17
    &test__imports__tree__table,                    // 18
    &test__imports__egg__table,                     // 19
    &test__imports__user__table,                    // 20
    &google__protobuf__struct__table,               // 21
    &google__protobuf__any__table,                  // 22
    &google__protobuf__timestamp__table,            // 23
    &google__protobuf__duration__table,             // 24
    &google__protobuf__field_mask__table,           // 25
    &google__protobuf__value__table,                // 26
    &google__protobuf__list_value__table,           // 27
    &google__protobuf__double_value__table,         // 28
    &google__protobuf__bytes_value__table,          // 29
    &test__proto2__groups__table,                   // 30
    &test__extending__weight__table,                // 31
    &test__extending__scope__table,                 // 32
    &test__extending__set__table,                   // 33
    &test__extending__entry__table,                 // 34
};

const size_t fuzz_table_count = sizeof fuzz_tables / sizeof *fuzz_tables;

const LifelineMessageTable *const fuzz_extensions[] = {
    &test__extending__scope__scope_x6434137f__table,
    &test__extending__scope__self_xdc06d8eb__table,
    &test__extending__entry__entry_x9c90f27b__table,
    &test__extending__a_double_x098b5d0a__table,
    &test__extending__a_float_xc1497433__table,
    &test__extending__an_int64_x7768d348__table,
    &test__extending__a_uint64_x747b7b35__table,
    &test__extending__an_int32_xe76134d3__table,
    &test__extending__a_fixed64_x25eff3e1__table,
    &test__extending__a_fixed32_x0de30226__table,
    &test__extending__a_bool_xca9e2e23__table,
    &test__extending__a_string_x96e1aee2__table,
    &test__extending__some_bytes_x4a9eac1f__table,
    &test__extending__a_uint32_x048319aa__table,
    &test__extending__an_sfixed32_xe7e3b701__table,
    &test__extending__an_sfixed64_x5beb2962__table,
    &test__extending__a_sint32_xfa5ba060__table,
    &test__extending__a_sint64_x8e543a97__table,
    &test__extending__size_x5635fdde__table,
    &test__extending__color_xd625f416__table,
    &test__extending__weight_x15ad4443__table,
    &test__extending__pair_x9a37e4e7__table,
    &test__extending__numbers_xcb6d1c6f__table,
    &test__extending__packed_numbers_x13001082__table,
    &test__extending__sizes_x63fe5757__table,
    &test__extending__texts_x4cf6fb89__table,
    &test__extending__weights_x4fc25790__table,
    &test__extending__spot_x7fba551f__table,
    &test__extending__name_x5384ddc4__table,
    &test__extending__unit_xf261c7c5__table,
    &test__extending__heavy_xa9673b1a__table,
};

const size_t fuzz_extension_count = sizeof fuzz_extensions / sizeof *fuzz_extensions;

static bool is_named(const char *name, size_t count, const char *expected, size_t expected_count) {
    return count == expected_count && memcmp(name, expected, count) == 0;
}

const LifelineMessageTable *fuzz_find_message(void *context, const char *name, size_t count) {
    (void)context;
    for (size_t index = 0; index < fuzz_table_count; index += 1) {
        const char *full_name = fuzz_tables[index]->full_name;
        if (is_named(name, count, full_name, strlen(full_name))) return fuzz_tables[index];
    }
    return NULL;
}

const LifelineMessageTable *fuzz_find_extension(
    void *context, const LifelineMessageTable *extended, uint32_t number, const char *name, size_t count) {
    (void)context;
    for (size_t index = 0; index < fuzz_extension_count; index += 1) {
        const LifelineMessageTable *extension = fuzz_extensions[index];
        size_t text_count;
        const char *text_name = lifeline_extension_text_name(extension, &text_count);
        bool is_found = name == NULL ? extension->fields[0].number == number
                                     : is_named(name, count, text_name, text_count)
                                           || is_named(name, count, extension->full_name, strlen(extension->full_name));
        if (is_found && extension->extended == extended) return extension;
    }
    return NULL;
}
