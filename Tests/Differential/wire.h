// Encoded messages as trees of fields that can be read, changed and written again.
//
// This reader is as lenient as C++ libprotobuf, so that it can explain all input that either side accepts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

namespace differential {

enum WireType : uint32_t { varint = 0, fixed64 = 1, length_delimited = 2, start_group = 3, end_group = 4, fixed32 = 5 };

// One encoded field.
struct WireField {
    enum class Content { bytes, fields, varints };

    uint32_t number = 0;
    uint32_t wire_type = varint;
    uint64_t value = 0;               // of a varint
    std::string bytes;                // of a fixed-size or length-delimited value
    std::vector<WireField> fields;    // of a submessage or a group
    std::vector<uint64_t> varints;    // of a packed field
    Content content = Content::bytes;  // what a length-delimited value holds

    // Its differences from the shortest form; only the mutator sets these.
    uint32_t extra_tag_bytes = 0;
    uint32_t extra_length_bytes = 0;
    uint32_t extra_value_bytes = 0;
    int64_t length_error = 0;
};

// The special features of an encoded message.
struct WireFacts {
    bool tenth_byte_over_one = false;  // a varint of ten bytes whose value is over 64 bits
    bool tag_over_32_bits = false;
    bool length_over_five_bytes = false;
    bool group = false;
    bool merge = false;            // a submessage that is not repeated occurs again, also as a oneof's member
    bool other_wire_type = false;  // a known field with a wire type that is not its own
    bool unknown = false;          // a field whose number the type does not declare
    bool unknown_number_of_closed_enum = false;
    bool unknown_number_of_open_enum_in_proto2 = false;  // of an enum of proto3, in a message of proto2
    bool high_unknown_number_of_enum = false;            // of a closed enum, over 32 bits
    bool high_bool_in_map = false;                       // a map's bool that is true, but not by its lower 32 bits
    bool incomplete_proto2_entry = false;                // of a map: without key or without value
    bool negative_zero = false;                          // as a floating-point number that has no presence
    bool other_item = false;  // a message set has something else than items as C++ writes them
};

struct WireMessage {
    std::vector<WireField> fields;
    WireFacts facts;
};

// Reads a message of the type; of an unknown type if it is NULL. Returns nothing if it is malformed in a way that C++
// libprotobuf also refuses, or deeper than 200 messages.
std::optional<WireMessage> read_wire(const google::protobuf::Descriptor *type, std::string_view bytes);

std::string write_wire(const std::vector<WireField> &fields);

void append_varint(std::string &bytes, uint64_t value, uint32_t extra_bytes = 0);

}  // namespace differential
