#include "exceptions.h"

namespace differential {

namespace {

const Exception acceptance_exceptions[] = {
    {"varint over 64 bits",
     "The tenth byte of a varint holds one bit. Where it is over 1, C++ drops what does not fit; we refuse it, lest "
     "two readers see different numbers.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_MALFORMED_VARINT && comparison.cpp_accepts
                && comparison.facts.tenth_byte_over_one;
     },
     true},
    {"tag over 32 bits",
     "The fifth byte of a tag holds four bits. Where it is over 15, C++ drops what does not fit; we refuse it, as "
     "above.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_INVALID_TAG && comparison.cpp_accepts
                && comparison.facts.tag_over_32_bits;
     },
     true},
    {"length of over five bytes",
     "The length of a field is a varint, whose long forms are valid. C++ reads only five bytes of a length; we read "
     "ten, as of any varint.",
     [](const Comparison &comparison) {
         return comparison.engine.accepted() && !comparison.cpp_accepts && comparison.facts.length_over_five_bytes;
     },
     true},
    {"other item of a message set",
     "C++ drops what stands in a message set beside items, and items whose fields are in another order or in longer "
     "forms. We keep it all.",
     [](const Comparison &comparison) { return comparison.facts.other_item; },
     false},
};

const Exception content_exceptions[] = {
    {"open enum in a proto2 message",
     "Whether an enum is open depends on the file that declares it (protobuf.dev/programming-guides/enum). C++ 3.21 "
     "asks the file of the field instead, so to it a proto3 enum in a proto2 message is closed.",
     [](const Comparison &comparison) { return comparison.facts.unknown_number_of_open_enum_in_proto2; },
     false},
    {"number over 32 bits of a closed enum",
     "A number that the enum does not declare is kept as it is. C++ keeps 32 bits of it in a message without generated "
     "code, unless it is packed.",
     [](const Comparison &comparison) {
         return comparison.type.is_dynamic && comparison.facts.high_unknown_number_of_enum;
     },
     false},
    {"bool over 32 bits in a map",
     "A bool is true when its varint is not 0. Of a map's key or value C++ 3.21 looks at 32 bits, elsewhere at 64.",
     [](const Comparison &comparison) { return comparison.facts.high_bool_in_map; },
     false},
    {"other item of a message set",
     "As above: C++ may refuse nothing of it, and drop it.",
     [](const Comparison &comparison) { return comparison.facts.other_item; },
     false},
};

}  // namespace

const Exception *explain_acceptance(const Comparison &comparison) {
    for (const Exception &exception : acceptance_exceptions) {
        if (exception.applies(comparison)) return &exception;
    }
    return nullptr;
}

const Exception *explain_content(const Comparison &comparison) {
    for (const Exception &exception : content_exceptions) {
        if (exception.applies(comparison)) return &exception;
    }
    return nullptr;
}

bool protobuf_c_agrees(const WireFacts &facts) {
    if (facts.group) return false;                    // it refuses groups, unknown ones too
    if (facts.merge) return false;                    // it merges submessages wrongly
    if (facts.other_wire_type) return false;          // it refuses a known field of another wire type
    if (facts.negative_zero) return false;            // it takes -0.0 for a value that is absent
    if (facts.incomplete_proto2_entry) return false;  // to it, key and value of proto2's maps are required
    // It regards all enums as open.
    if (facts.unknown_number_of_closed_enum || facts.unknown_number_of_open_enum_in_proto2) return false;
    // It reads other long forms of varints than C++.
    return !facts.tenth_byte_over_one && !facts.tag_over_32_bits && !facts.length_over_five_bytes;
}

}  // namespace differential
