// The message types that an input can choose. New ones go to the end: the corpus names types by their place here.
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
};

const size_t fuzz_table_count = sizeof fuzz_tables / sizeof *fuzz_tables;
