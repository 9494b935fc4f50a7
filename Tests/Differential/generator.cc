#include "generator.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "wire.h"

namespace differential {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::UnknownFieldSet;

namespace {

// Integers of every varint length, including the values around each change of length and sign.
uint64_t integer(Random &random) {
    uint64_t bits = random.next();
    switch (random.below(4)) {
        case 0:
            return bits & 0x7F;
        case 1:
            return bits >> random.below(64);
        case 2:
            return (uint64_t{1} << random.below(64)) - (bits & 1);
        default:
            return 0 - ((uint64_t{1} << random.below(64)) - (bits & 1));
    }
}

template <typename Float, typename Bits>
Float floating(Random &random) {
    using Limits = std::numeric_limits<Float>;
    static const Float special[] = {
        Float(0), -Float(0), Float(1), Float(-1.5), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
        Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min()};
    if (!random.one_in(3)) return special[random.below(std::size(special))];
    Bits bits = static_cast<Bits>(random.next());  // NaNs of every payload among them
    Float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

void append_utf8(std::string &text, uint32_t scalar) {
    if (scalar < 0x80) {
        text += static_cast<char>(scalar);
        return;
    }
    int more = scalar < 0x800 ? 1 : scalar < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xC0, 0xE0, 0xF0};
    text += static_cast<char>(leads[more] | scalar >> (6 * more));
    while (more-- > 0) text += static_cast<char>(0x80 | ((scalar >> (6 * more)) & 0x3F));
}

// Lengths around critical ones: of words, of vectors, and of the length's own varint.
size_t length(Random &random) {
    static const size_t edges[] = {0, 1, 7, 8, 15, 16, 17, 31, 32, 127, 128, 129};
    if (random.one_in(400)) return 16'380 + random.below(10);
    return random.one_in(3) ? edges[random.below(std::size(edges))] : random.below(12);
}

std::string text(Random &random) {
    static const uint32_t edges[] = {0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};
    std::string value;
    size_t wanted = length(random);
    bool ascii = random.one_in(2);
    while (value.size() < wanted) {
        if (ascii) {
            append_utf8(value, ' ' + uint32_t(random.below(95)));
        } else {
            append_utf8(value, random.one_in(2) ? edges[random.below(std::size(edges))] : 0xA0 + random.below(0x400));
        }
    }
    return value;
}

std::string some_bytes(Random &random) {
    std::string value(length(random), '\0');
    for (char &byte : value) byte = static_cast<char>(random.next());
    return value;
}

// The possible contents of a packed field of varints.
std::string some_varints(Random &random) {
    std::string value;
    for (size_t count = random.below(5); count > 0; count -= 1) append_varint(value, integer(random));
    return value;
}

int enum_number(const FieldDescriptor *field, Random &random) {
    const EnumDescriptor *type = field->enum_type();
    // C++ 3.21 regards the enums of proto2 messages as closed.
    bool open = field->file()->syntax() == FileDescriptor::SYNTAX_PROTO3;
    if (open && random.one_in(3)) return static_cast<int>(integer(random));
    return type->value(static_cast<int>(random.below(type->value_count())))->number();
}

class Filler {
public:
    explicit Filler(Random &random) : random_(random) {
        // Mostly a small message; sometimes a large one, or one of the maximum depth.
        fields_left_ = random.one_in(20) ? 300 : 1 + random.below(30);
        deepest_ = random.one_in(20) ? 97 + random.below(5) : 1 + random.below(5);
        deep_ = deepest_ > 10;
    }

    void fill(Message &message, size_t depth) {
        const Descriptor *type = message.GetDescriptor();
        size_t wanted = random_.below(std::min<size_t>(type->field_count(), 12) + 1);
        if (deep_ && type->field_count() > 0) wanted = 1;
        for (size_t count = 0; count < wanted && fields_left_ > 0; count += 1) fill_field(message, pick(type), depth);
        if (!random_.one_in(8)) fill_required(message, depth);
        add_extensions(message, depth);
        if (random_.one_in(6)) add_unknown(*message.GetReflection()->MutableUnknownFields(&message), *type, 3);
    }

private:
    // In a chain of messages, a field that continues it, if there is one.
    const FieldDescriptor *pick(const Descriptor *type) {
        const FieldDescriptor *field = type->field(static_cast<int>(random_.below(type->field_count())));
        for (int tries = 0; deep_ && tries < 20 && field->message_type() == nullptr; tries += 1) {
            field = type->field(static_cast<int>(random_.below(type->field_count())));
        }
        return field;
    }

    void fill_required(Message &message, size_t depth) {
        const Descriptor *type = message.GetDescriptor();
        for (int index = 0; index < type->field_count(); index += 1) {
            const FieldDescriptor *field = type->field(index);
            if (field->is_required() && !message.GetReflection()->HasField(message, field)) set(message, field, depth);
        }
    }

    void add_extensions(Message &message, size_t depth) {
        if (message.GetDescriptor()->extension_range_count() == 0) return;
        std::vector<const FieldDescriptor *> extensions;
        message.GetDescriptor()->file()->pool()->FindAllExtensions(message.GetDescriptor(), &extensions);
        for (const FieldDescriptor *extension : extensions) {
            if (random_.one_in(3)) fill_field(message, extension, depth);
        }
    }

    void fill_field(Message &message, const FieldDescriptor *field, size_t depth) {
        if (!field->is_repeated()) return set(message, field, depth);
        if (field->is_map()) return add_entries(message, field, depth);
        size_t count = random_.one_in(100) ? random_.below(300) : 1 + random_.below(4);
        for (; count > 0 && fields_left_ > 0; count -= 1) add(message, field, depth);
    }

    void add_entries(Message &message, const FieldDescriptor *field, size_t depth) {
        for (size_t count = 1 + random_.below(4); count > 0 && fields_left_ > 0; count -= 1) {
            if (depth >= deepest_) return;
            fields_left_ -= 1;
            Message *entry = message.GetReflection()->AddMessage(&message, field);
            set(*entry, field->message_type()->map_key(), depth + 1);
            set(*entry, field->message_type()->map_value(), depth + 1);
        }
    }

    void set(Message &message, const FieldDescriptor *field, size_t depth) {
        const Reflection *reflection = message.GetReflection();
        if (fields_left_ > 0) fields_left_ -= 1;
        switch (field->cpp_type()) {
            case FieldDescriptor::CPPTYPE_INT32:
                return reflection->SetInt32(&message, field, static_cast<int32_t>(integer(random_)));
            case FieldDescriptor::CPPTYPE_INT64:
                return reflection->SetInt64(&message, field, static_cast<int64_t>(integer(random_)));
            case FieldDescriptor::CPPTYPE_UINT32:
                return reflection->SetUInt32(&message, field, static_cast<uint32_t>(integer(random_)));
            case FieldDescriptor::CPPTYPE_UINT64:
                return reflection->SetUInt64(&message, field, integer(random_));
            case FieldDescriptor::CPPTYPE_DOUBLE:
                return reflection->SetDouble(&message, field, floating<double, uint64_t>(random_));
            case FieldDescriptor::CPPTYPE_FLOAT:
                return reflection->SetFloat(&message, field, floating<float, uint32_t>(random_));
            case FieldDescriptor::CPPTYPE_BOOL:
                return reflection->SetBool(&message, field, random_.one_in(2));
            case FieldDescriptor::CPPTYPE_ENUM:
                return reflection->SetEnumValue(&message, field, enum_number(field, random_));
            case FieldDescriptor::CPPTYPE_STRING:
                return reflection->SetString(&message, field, string(field));
            case FieldDescriptor::CPPTYPE_MESSAGE:
                if (depth < deepest_) fill(*reflection->MutableMessage(&message, field), depth + 1);
                return;
        }
    }

    void add(Message &message, const FieldDescriptor *field, size_t depth) {
        const Reflection *reflection = message.GetReflection();
        if (fields_left_ > 0) fields_left_ -= 1;
        switch (field->cpp_type()) {
            case FieldDescriptor::CPPTYPE_INT32:
                return reflection->AddInt32(&message, field, static_cast<int32_t>(integer(random_)));
            case FieldDescriptor::CPPTYPE_INT64:
                return reflection->AddInt64(&message, field, static_cast<int64_t>(integer(random_)));
            case FieldDescriptor::CPPTYPE_UINT32:
                return reflection->AddUInt32(&message, field, static_cast<uint32_t>(integer(random_)));
            case FieldDescriptor::CPPTYPE_UINT64:
                return reflection->AddUInt64(&message, field, integer(random_));
            case FieldDescriptor::CPPTYPE_DOUBLE:
                return reflection->AddDouble(&message, field, floating<double, uint64_t>(random_));
            case FieldDescriptor::CPPTYPE_FLOAT:
                return reflection->AddFloat(&message, field, floating<float, uint32_t>(random_));
            case FieldDescriptor::CPPTYPE_BOOL:
                return reflection->AddBool(&message, field, random_.one_in(2));
            case FieldDescriptor::CPPTYPE_ENUM:
                return reflection->AddEnumValue(&message, field, enum_number(field, random_));
            case FieldDescriptor::CPPTYPE_STRING:
                return reflection->AddString(&message, field, string(field));
            case FieldDescriptor::CPPTYPE_MESSAGE:
                if (depth < deepest_) fill(*reflection->AddMessage(&message, field), depth + 1);
                return;
        }
    }

    std::string string(const FieldDescriptor *field) {
        return field->type() == FieldDescriptor::TYPE_BYTES ? some_bytes(random_) : text(random_);
    }

    // A number that the type may know. If so, the wire type is probably not the field's.
    int unknown_number(const Descriptor &type) {
        if (type.field_count() > 0 && random_.one_in(3)) {
            return type.field(static_cast<int>(random_.below(type.field_count())))->number();
        }
        static const int numbers[] = {15, 16, 100, 999, 2047, 2048, 18'999, 100'000, 536'870'911};
        return numbers[random_.below(std::size(numbers))];
    }

    std::string unknown_payload() { return random_.one_in(2) ? some_bytes(random_) : some_varints(random_); }

    void add_unknown(UnknownFieldSet &fields, const Descriptor &type, size_t depth) {
        for (size_t count = 1 + random_.below(3); count > 0; count -= 1) {
            int number = unknown_number(type);
            switch (random_.below(depth > 0 ? 5 : 4)) {
                case 0: fields.AddVarint(number, integer(random_)); break;
                case 1: fields.AddFixed32(number, static_cast<uint32_t>(random_.next())); break;
                case 2: fields.AddFixed64(number, random_.next()); break;
                case 3: fields.AddLengthDelimited(number, unknown_payload()); break;
                default: add_unknown(*fields.AddGroup(number), type, depth - 1); break;
            }
        }
    }

    Random &random_;
    size_t fields_left_;
    size_t deepest_;
    bool deep_;
};

}  // namespace

void fill(Message &message, Random &random) {
    Filler(random).fill(message, 0);
}

}  // namespace differential
