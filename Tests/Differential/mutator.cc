#include "mutator.h"

#include <algorithm>
#include <vector>

#include "wire.h"

namespace differential {

namespace {

using Fields = std::vector<WireField>;

// MARK: Fields

// Every list of fields in the tree, the outermost first.
void collect(Fields &fields, std::vector<Fields *> &lists) {
    lists.push_back(&fields);
    for (WireField &field : fields) {
        if (field.content == WireField::Content::fields) collect(field.fields, lists);
    }
}

// Gives the field another wire type, and a value for it.
void change_wire_type(WireField &field, Random &random) {
    static const uint32_t wire_types[] = {varint, fixed64, length_delimited, start_group, fixed32};
    field.wire_type = wire_types[random.below(5)];
    size_t size = field.wire_type == fixed64 ? 8 : field.wire_type == fixed32 ? 4 : random.below(9);
    if (field.content == WireField::Content::bytes) field.bytes.resize(size, static_cast<char>(random.next()));
    if (field.wire_type == fixed64 || field.wire_type == fixed32) {
        field.content = WireField::Content::bytes;
        field.bytes.resize(size);
    }
    if (field.wire_type == start_group) field.content = WireField::Content::fields;
}

// Bytes that change nothing for readers that accept long forms of varints.
void lengthen(WireField &field, Random &random) {
    uint32_t extra = 1 + static_cast<uint32_t>(random.below(random.one_in(3) ? 10 : 3));
    switch (random.below(3)) {
        case 0: field.extra_tag_bytes = extra; break;
        case 1: field.extra_length_bytes = extra; break;
        default: field.extra_value_bytes = extra; break;
    }
}

uint64_t interesting_integer(Random &random) {
    uint64_t power = uint64_t{1} << random.below(64);
    return random.one_in(2) ? power - random.below(2) : 0 - power;
}

void change_value(WireField &field, Random &random) {
    field.value = interesting_integer(random);
    for (uint64_t &value : field.varints) {
        if (random.one_in(2)) value = interesting_integer(random);
    }
    if (!field.bytes.empty()) field.bytes[random.below(field.bytes.size())] = static_cast<char>(random.next());
}

void mutate_list(Fields &fields, const std::vector<Fields *> &others, Random &random) {
    if (fields.empty() || random.one_in(5)) {
        const Fields &donor = *others[random.below(others.size())];
        if (donor.empty()) return;
        WireField field = donor[random.below(donor.size())];
        fields.insert(fields.begin() + static_cast<ptrdiff_t>(random.below(fields.size() + 1)), std::move(field));
        return;
    }
    size_t index = random.below(fields.size());
    size_t another = random.below(fields.size());
    WireField &field = fields[index];
    switch (random.below(10)) {
        case 0: fields.erase(fields.begin() + static_cast<ptrdiff_t>(index)); break;
        case 1: {
            WireField copy = field;
            fields.insert(fields.begin() + static_cast<ptrdiff_t>(another), std::move(copy));
            break;
        }
        case 2: std::swap(fields[index], fields[another]); break;
        case 3: std::reverse(fields.begin(), fields.end()); break;
        case 4: change_wire_type(field, random); break;
        case 5:
        case 6: lengthen(field, random); break;
        case 7: change_value(field, random); break;
        case 8: field.number = random.one_in(2) ? fields[another].number : 1 + uint32_t(random.below(25)); break;
        default: field.length_error = static_cast<int64_t>(random.below(5)) - 2; break;
    }
}

std::string mutate_fields(Fields fields, Fields others, Random &random) {
    std::vector<Fields *> other_lists;
    collect(others, other_lists);
    for (size_t times = 1 + random.below(3); times > 0; times -= 1) {
        std::vector<Fields *> lists;
        collect(fields, lists);
        // The outer ones, which have more fields, more often.
        mutate_list(*lists[random.below(random.one_in(2) ? lists.size() : 1)], other_lists, random);
    }
    return write_wire(fields);
}

// MARK: Bytes

std::string mutate_bytes(std::string bytes, Random &random) {
    static const uint8_t interesting[] = {0x00, 0x01, 0x02, 0x0A, 0x0B, 0x0C, 0x0F, 0x10, 0x7F, 0x80, 0x81, 0xC0, 0xFF};
    for (size_t times = 1 + random.below(4); times > 0 && !bytes.empty(); times -= 1) {
        size_t position = random.below(bytes.size());
        size_t another = random.below(bytes.size());
        uint64_t any = random.next();
        char byte = static_cast<char>(random.one_in(2) ? interesting[any % std::size(interesting)] : any);
        switch (random.below(6)) {
            case 0: bytes[position] ^= static_cast<char>(1 << random.below(8)); break;
            case 1: bytes[position] = byte; break;
            case 2: bytes.erase(position, 1 + random.below(random.one_in(4) ? 16 : 1)); break;
            case 3: bytes.insert(position, 1 + random.below(random.one_in(4) ? 12 : 1), byte); break;
            case 4: bytes.insert(position, bytes.substr(another, random.below(24))); break;
            default: bytes.resize(position); break;
        }
    }
    return bytes;
}

}  // namespace

std::string mutate(
    const google::protobuf::Descriptor *type, std::string_view bytes, std::string_view other, Random &random) {
    size_t way = random.below(16);
    if (way == 0) return std::string(bytes) + std::string(other);
    if (way == 1) return std::string(bytes) + std::string(bytes);
    auto tree = read_wire(type, bytes);
    auto other_tree = read_wire(type, other);
    if (way < 6 || !tree || !other_tree) return mutate_bytes(std::string(bytes), random);
    std::string variant = mutate_fields(std::move(tree->fields), std::move(other_tree->fields), random);
    return way < 13 ? variant : mutate_bytes(std::move(variant), random);
}

}  // namespace differential
