#include "wire.h"

#include <map>

#include <google/protobuf/descriptor.pb.h>

namespace differential {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

namespace {

// Deeper than any of the limits, which are 100, and shallow enough for the stack.
constexpr uint32_t deepest = 200;

class Reader {
public:
    Reader(std::string_view bytes, WireFacts &facts) : rest_(bytes), facts_(facts) {}

    bool read_message(const Descriptor *type, uint32_t depth, std::vector<WireField> &fields) {
        return read_fields(type, depth, 0, fields) && rest_.empty();
    }

private:
    // Reads up to the end of the input, or of the group of that number.
    bool read_fields(const Descriptor *type, uint32_t depth, uint32_t group, std::vector<WireField> &fields) {
        if (depth > deepest) return false;
        std::map<uint32_t, uint32_t> seen;
        while (!rest_.empty()) {
            std::string_view start = rest_;
            uint64_t tag = 0;
            if (!read_varint(5, tag)) return false;
            if (tag > UINT32_MAX) facts_.tag_over_32_bits = true;
            WireField field;
            field.number = static_cast<uint32_t>(tag) >> 3;
            field.wire_type = tag & 7;
            if (field.number == 0) return false;
            if (field.wire_type == end_group) return group != 0 && field.number == group;
            const FieldDescriptor *known = type == nullptr ? nullptr : type->FindFieldByNumber(field.number);
            if (!read_value(known, depth, field)) return false;
            note(type, known, field, seen);
            bool in_message_set = type != nullptr && type->options().message_set_wire_format();
            if (in_message_set && !is_plain_item(field, start.substr(0, start.size() - rest_.size()))) {
                facts_.other_item = true;
            }
            fields.push_back(std::move(field));
        }
        if (type != nullptr && type->map_key() != nullptr && seen.size() < 2 && !is_proto3(type->file())) {
            facts_.incomplete_proto2_entry = true;
        }
        return group == 0;
    }

    bool read_value(const FieldDescriptor *known, uint32_t depth, WireField &field) {
        switch (field.wire_type) {
            case varint:
                return read_varint(10, field.value);
            case fixed64:
                return read_bytes(8, field.bytes);
            case fixed32:
                return read_bytes(4, field.bytes);
            case start_group:
                facts_.group = true;
                field.content = WireField::Content::fields;
                return read_fields(type_of_group(known), depth + 1, field.number, field.fields);
            case length_delimited:
                return read_payload(known, depth, field);
            default:
                return false;
        }
    }

    // Whether a field of a message set is an item as C++ writes it: in shortest form, a type and a message in a group.
    static bool is_plain_item(const WireField &field, std::string_view bytes) {
        return field.wire_type == start_group && field.number == 1 && field.fields.size() == 2
               && field.fields[0].number == 2 && field.fields[0].wire_type == varint && field.fields[0].value >= 4
               && field.fields[0].value < 1u << 29 && field.fields[1].number == 3
               && field.fields[1].wire_type == length_delimited && write_wire({field}) == bytes;
    }

    static const Descriptor *type_of_group(const FieldDescriptor *known) {
        bool is_group = known != nullptr && known->type() == FieldDescriptor::TYPE_GROUP;
        return is_group ? known->message_type() : nullptr;
    }

    bool read_payload(const FieldDescriptor *known, uint32_t depth, WireField &field) {
        uint64_t length = 0;
        size_t before = rest_.size();
        if (!read_varint(10, length)) return false;
        if (before - rest_.size() > 5) facts_.length_over_five_bytes = true;
        if (length > rest_.size()) return false;
        std::string_view payload = rest_.substr(0, length);
        rest_.remove_prefix(length);
        Reader reader(payload, facts_);
        if (known != nullptr && known->type() == FieldDescriptor::TYPE_MESSAGE) {
            field.content = WireField::Content::fields;
            return reader.read_message(known->message_type(), depth + 1, field.fields);
        }
        if (known != nullptr && known->is_packable() && is_varint(known)) {
            field.content = WireField::Content::varints;
            return reader.read_varints(field.varints);
        }
        field.bytes = payload;
        return true;
    }

    bool read_varints(std::vector<uint64_t> &values) {
        while (!rest_.empty()) {
            uint64_t value = 0;
            if (!read_varint(10, value)) return false;
            values.push_back(value);
        }
        return true;
    }

    // Bits that do not fit are dropped and noted.
    bool read_varint(size_t longest, uint64_t &value) {
        value = 0;
        for (size_t index = 0; index < longest; index += 1) {
            if (index == rest_.size()) return false;
            uint8_t byte = static_cast<uint8_t>(rest_[index]);
            if (index == 9 && byte > 1 && byte < 0x80) facts_.tenth_byte_over_one = true;
            value |= static_cast<uint64_t>(byte & 0x7F) << (7 * index);
            if (byte >= 0x80) continue;
            rest_.remove_prefix(index + 1);
            return true;
        }
        return false;
    }

    bool read_bytes(size_t count, std::string &bytes) {
        if (rest_.size() < count) return false;
        bytes = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return true;
    }

    static bool is_negative_zero(const WireField &field) {
        std::string bytes(field.wire_type == fixed64 ? 8 : 4, '\0');
        bytes.back() = static_cast<char>(0x80);
        return field.bytes == bytes;
    }

    static bool is_proto3(const google::protobuf::FileDescriptor *file) {
        return file->syntax() == google::protobuf::FileDescriptor::SYNTAX_PROTO3;
    }

    static bool is_varint(const FieldDescriptor *field) { return own_wire_type(field) == varint; }

    static WireType own_wire_type(const FieldDescriptor *field) {
        switch (field->type()) {
            case FieldDescriptor::TYPE_DOUBLE:
            case FieldDescriptor::TYPE_FIXED64:
            case FieldDescriptor::TYPE_SFIXED64:
                return fixed64;
            case FieldDescriptor::TYPE_FLOAT:
            case FieldDescriptor::TYPE_FIXED32:
            case FieldDescriptor::TYPE_SFIXED32:
                return fixed32;
            case FieldDescriptor::TYPE_STRING:
            case FieldDescriptor::TYPE_BYTES:
            case FieldDescriptor::TYPE_MESSAGE:
                return length_delimited;
            case FieldDescriptor::TYPE_GROUP:
                return start_group;
            default:
                return varint;
        }
    }

    void note(
        const Descriptor *type, const FieldDescriptor *known, const WireField &field,
        std::map<uint32_t, uint32_t> &seen) {
        if (type == nullptr) return;
        if (known == nullptr) {
            facts_.unknown = true;
            return;
        }
        if (field.wire_type != own_wire_type(known)) {
            bool is_packed = known->is_packable() && field.wire_type == length_delimited;
            if (!is_packed) {
                facts_.other_wire_type = true;
                return;
            }
        }
        bool is_again = seen[field.number]++ > 0;
        if (is_again && known->type() == FieldDescriptor::TYPE_MESSAGE && !known->is_repeated()) facts_.merge = true;
        if (!known->has_presence() && is_negative_zero(field)) facts_.negative_zero = true;
        bool in_entry = type->map_key() != nullptr;
        if (in_entry && known->type() == FieldDescriptor::TYPE_BOOL && field.value != 0 && uint32_t(field.value) == 0) {
            facts_.high_bool_in_map = true;
        }
        if (known->type() == FieldDescriptor::TYPE_ENUM) note_enum(known, field);
    }

    void note_enum(const FieldDescriptor *known, const WireField &field) {
        if (is_proto3(known->file())) return;
        bool &fact = is_proto3(known->enum_type()->file()) ? facts_.unknown_number_of_open_enum_in_proto2
                                                           : facts_.unknown_number_of_closed_enum;
        auto is_unknown = [&](uint64_t value) {
            if (known->enum_type()->FindValueByNumber(static_cast<int>(value)) != nullptr) return false;
            if (static_cast<uint64_t>(static_cast<int>(value)) != value) facts_.high_unknown_number_of_enum = true;
            return true;
        };
        if (field.wire_type == varint && is_unknown(field.value)) fact = true;
        for (uint64_t value : field.varints) {
            if (is_unknown(value)) fact = true;
        }
    }

    std::string_view rest_;
    WireFacts &facts_;
};

std::string payload_of(const WireField &field) {
    switch (field.content) {
        case WireField::Content::bytes:
            return field.bytes;
        case WireField::Content::fields:
            return write_wire(field.fields);
        case WireField::Content::varints:
            std::string payload;
            for (uint64_t value : field.varints) append_varint(payload, value, field.extra_value_bytes);
            return payload;
    }
    return "";
}

void append_tag(std::string &bytes, const WireField &field, uint32_t wire_type) {
    append_varint(bytes, static_cast<uint64_t>(field.number) << 3 | wire_type, field.extra_tag_bytes);
}

}  // namespace

std::optional<WireMessage> read_wire(const Descriptor *type, std::string_view bytes) {
    WireMessage message;
    if (!Reader(bytes, message.facts).read_message(type, 0, message.fields)) return std::nullopt;
    return message;
}

std::string write_wire(const std::vector<WireField> &fields) {
    std::string bytes;
    for (const WireField &field : fields) {
        append_tag(bytes, field, field.wire_type);
        if (field.wire_type == varint) {
            append_varint(bytes, field.value, field.extra_value_bytes);
        } else if (field.wire_type == length_delimited) {
            std::string payload = payload_of(field);
            int64_t length = static_cast<int64_t>(payload.size()) + field.length_error;
            append_varint(bytes, static_cast<uint64_t>(length), field.extra_length_bytes);
            bytes += payload;
        } else if (field.wire_type == start_group) {
            bytes += payload_of(field);
            append_tag(bytes, field, end_group);
        } else {
            bytes += field.bytes;
        }
    }
    return bytes;
}

void append_varint(std::string &bytes, uint64_t value, uint32_t extra_bytes) {
    while (value >= 0x80) {
        bytes += static_cast<char>(value | 0x80);
        value >>= 7;
    }
    if (extra_bytes == 0) {
        bytes += static_cast<char>(value);
        return;
    }
    bytes += static_cast<char>(value | 0x80);
    bytes.append(extra_bytes - 1, static_cast<char>(0x80));
    bytes += '\0';
}

}  // namespace differential
