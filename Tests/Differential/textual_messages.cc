#include "textual_messages.h"

#include <cmath>
#include <limits>

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include "generator.h"
#include "peers.h"

namespace differential {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

constexpr int deepest_message = 10'000;

// C++ and Python read no message deeper than 100. They count differently.
constexpr int deepest_generated = 90;

// Calls `body` for the message and each one below it, the inner ones last.
template <typename Body>
void for_each_message(Message &message, const Body &body) {
    body(message);
    const Reflection *reflection = message.GetReflection();
    std::vector<const FieldDescriptor *> fields;
    reflection->ListFields(message, &fields);
    for (const FieldDescriptor *field : fields) {
        if (field->message_type() == nullptr) continue;
        if (!field->is_repeated()) {
            for_each_message(*reflection->MutableMessage(&message, field), body);
            continue;
        }
        for (int index = 0; index < reflection->FieldSize(message, field); index += 1) {
            for_each_message(*reflection->MutableRepeatedMessage(&message, field, index), body);
        }
    }
}

// MARK: Any

const Message *prototype_of(const std::string &url) {
    static google::protobuf::DynamicMessageFactory factory(dynamic_pool());
    size_t slash = url.rfind('/');
    if (slash == std::string::npos) return nullptr;
    const auto *type = dynamic_pool()->FindMessageTypeByName(url.substr(slash + 1));
    return type == nullptr ? nullptr : factory.GetPrototype(type);
}

using Normalize = std::optional<std::string>(const MessageType &type, std::string_view encoded);

void normalize_any(Message &any, Normalize *normalize) {
    if (any.GetDescriptor()->full_name() != "google.protobuf.Any") return;
    const Reflection *reflection = any.GetReflection();
    const FieldDescriptor *url = any.GetDescriptor()->FindFieldByNumber(1);
    const FieldDescriptor *value = any.GetDescriptor()->FindFieldByNumber(2);
    const Message *prototype = prototype_of(reflection->GetString(any, url));
    if (prototype == nullptr) return;
    MessageType type{prototype->GetDescriptor()->full_name(), nullptr, nullptr, prototype, true};
    std::optional<std::string> content = normalize(type, reflection->GetString(any, value));
    if (content) reflection->SetString(&any, value, *content);
}

// MARK: Making messages that a format can hold

class Fitter {
public:
    Fitter(TextualFormat format, const std::vector<MessageType> &types, Random &random)
        : types_(types), random_(random), is_for_json_(format == TextualFormat::json),
          keeps_unknown_(!is_for_json_ && random.one_in(4)) {}

    std::unique_ptr<Message> message(const MessageType &type) {
        std::unique_ptr<Message> message;
        // An unknown field may have the number of a known one, and bytes that are not a value of it.
        while (message == nullptr) {
            std::unique_ptr<Message> filled(type.prototype->New());
            differential::fill(*filled, random_);
            for_each_message(*filled, [&](Message &each) {
                if (!keeps_unknown_) each.GetReflection()->MutableUnknownFields(&each)->Clear();
            });
            // Read again, maps have each key once.
            message = parse_with_cpp(type, canonical(*filled), deepest_message);
        }
        fit(*message);
        return message;
    }

private:
    void fit(Message &message) {
        for_each_message(message, [&](Message &each) {
            make_nans_alike(each);
            if (each.GetDescriptor()->options().map_entry()) add_value(each);
            if (is_for_json_) fit_to_json(each);
            if (each.GetDescriptor()->full_name() == "google.protobuf.Any" && !random_.one_in(40)) fit_any(each);
        });
    }

    // An entry without a message has an empty message.
    static void add_value(Message &entry) {
        const FieldDescriptor *value = entry.GetDescriptor()->map_value();
        if (value->message_type() != nullptr) entry.GetReflection()->MutableMessage(&entry, value);
    }

    static void make_nans_alike(Message &message) {
        const Reflection *reflection = message.GetReflection();
        std::vector<const FieldDescriptor *> fields;
        reflection->ListFields(message, &fields);
        for (const FieldDescriptor *field : fields) {
            if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
                make_nans_alike(
                    message, field, &Reflection::GetDouble, &Reflection::SetDouble, &Reflection::GetRepeatedDouble,
                    &Reflection::SetRepeatedDouble);
            } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
                make_nans_alike(
                    message, field, &Reflection::GetFloat, &Reflection::SetFloat, &Reflection::GetRepeatedFloat,
                    &Reflection::SetRepeatedFloat);
            }
        }
    }

    template <typename Float>
    static void make_nans_alike(
        Message &message, const FieldDescriptor *field,
        Float (Reflection::*get)(const Message &, const FieldDescriptor *) const,
        void (Reflection::*set)(Message *, const FieldDescriptor *, Float) const,
        Float (Reflection::*get_element)(const Message &, const FieldDescriptor *, int) const,
        void (Reflection::*set_element)(Message *, const FieldDescriptor *, int, Float) const) {
        const Reflection *reflection = message.GetReflection();
        constexpr Float nan = std::numeric_limits<Float>::quiet_NaN();
        if (!field->is_repeated()) {
            if (std::isnan((reflection->*get)(message, field))) (reflection->*set)(&message, field, nan);
            return;
        }
        for (int index = 0; index < reflection->FieldSize(message, field); index += 1) {
            if (!std::isnan((reflection->*get_element)(message, field, index))) continue;
            (reflection->*set_element)(&message, field, index, nan);
        }
    }

    void fit_to_json(Message &message) {
        const auto *type = message.GetDescriptor();
        make_null_values_null(message);
        if (type->full_name() == "google.protobuf.Value") return fit_value(message);
        if (type->full_name() == "google.protobuf.FieldMask") return fit_mask(message);
        if (random_.one_in(40)) return;
        if (type->full_name() == "google.protobuf.Timestamp") {
            set_time(message, -62'135'596'800, 253'402'300'799, false);
        } else if (type->full_name() == "google.protobuf.Duration") {
            set_time(message, -315'576'000'000, 315'576'000'000, true);
        }
    }

    static void make_null_values_null(Message &message) {
        const auto *type = message.GetDescriptor();
        for (int index = 0; index < type->field_count(); index += 1) {
            const FieldDescriptor *field = type->field(index);
            const auto *enumeration = field->enum_type();
            if (enumeration == nullptr || enumeration->full_name() != "google.protobuf.NullValue") continue;
            const Reflection *reflection = message.GetReflection();
            if (reflection->HasField(message, field)) reflection->SetEnumValue(&message, field, 0);
        }
    }

    void fit_value(Message &value) {
        const auto *type = value.GetDescriptor();
        const Reflection *reflection = value.GetReflection();
        const FieldDescriptor *null = type->FindFieldByNumber(1);
        const FieldDescriptor *number = type->FindFieldByNumber(2);
        // A value without a kind is read back as null.
        if (reflection->GetOneofFieldDescriptor(value, type->oneof_decl(0)) == nullptr) {
            reflection->SetEnumValue(&value, null, 0);
        }
        if (!reflection->HasField(value, number) || std::isfinite(reflection->GetDouble(value, number))) return;
        if (!random_.one_in(40)) reflection->SetDouble(&value, number, static_cast<double>(random_.next()) / 3);
    }

    void set_time(Message &message, int64_t first, int64_t last, bool is_duration) {
        int64_t seconds = first + static_cast<int64_t>(random_.next() % static_cast<uint64_t>(last - first));
        switch (random_.below(6)) {
            case 0: seconds = 0; break;
            case 1: seconds = first; break;
            case 2: seconds = last; break;
            case 3: seconds = static_cast<int64_t>(random_.below(200'000)) - 100'000; break;
            default: break;
        }
        static const int32_t units[] = {1, 1'000, 1'000'000, 100'000'000};
        int32_t nanoseconds = static_cast<int32_t>(random_.below(1'000'000'000));
        nanoseconds -= nanoseconds % units[random_.below(4)];
        if (random_.one_in(3)) nanoseconds = 0;
        if (is_duration) {
            if (seconds < 0 || (seconds == 0 && random_.one_in(2))) nanoseconds = -nanoseconds;
        }
        const auto *type = message.GetDescriptor();
        message.GetReflection()->SetInt64(&message, type->field(0), seconds);
        message.GetReflection()->SetInt32(&message, type->field(1), nanoseconds);
    }

    void fit_mask(Message &mask) {
        const FieldDescriptor *paths = mask.GetDescriptor()->field(0);
        const Reflection *reflection = mask.GetReflection();
        for (int index = 0; index < reflection->FieldSize(mask, paths); index += 1) {
            reflection->SetRepeatedString(&mask, paths, index, path());
        }
    }

    std::string path() {
        // Some of the last ones cannot be in a mask. C++ reads quotes, empty paths and two capital letters in a row
        // differently, so those are only fixed cases.
        static const char *parts[] = {
            "a", "b_c", "name", "some_long_name", "x.y", "a1", "*", "é", "<", "`k`", "A", "_1", "1"};
        std::string path = parts[random_.below(6)];
        while (random_.one_in(3)) path += parts[random_.below(random_.one_in(4) ? std::size(parts) : 8)];
        return path;
    }

    // An Any is empty if C++, which also counts the depth around it, would find it too deep.
    void fit_any(Message &any) {
        const MessageType &type = types_[random_.below(types_.size())];
        std::string url;
        std::string bytes;
        if (depth_ < 4) {
            depth_ += 1;
            bytes = canonical(*message(type));
            if (parse_with_cpp(type, bytes, 30 / depth_) == nullptr) bytes.clear();
            else url = url_of(type);
            depth_ -= 1;
        }
        const auto *descriptor = any.GetDescriptor();
        any.GetReflection()->SetString(&any, descriptor->field(0), url);
        any.GetReflection()->SetString(&any, descriptor->field(1), bytes);
    }

    const std::vector<MessageType> &types_;
    Random &random_;
    bool is_for_json_;
    bool keeps_unknown_;
    int depth_ = 0;
};

}  // namespace

std::string url_of(const MessageType &type) { return url_prefix + ("/" + type.name); }

std::optional<std::string> canonical_content(const MessageType &type, std::string_view encoded) {
    std::unique_ptr<Message> message = parse_with_cpp(type, encoded, deepest_message);
    if (message == nullptr) return std::nullopt;
    for_each_message(*message, [](Message &each) { normalize_any(each, canonical_content); });
    return canonical(*message);
}

std::optional<std::string> known_content(const MessageType &type, std::string_view encoded) {
    std::unique_ptr<Message> message = parse_with_cpp(type, encoded, deepest_message);
    if (message == nullptr) return std::nullopt;
    for_each_message(*message, [](Message &each) {
        each.GetReflection()->MutableUnknownFields(&each)->Clear();
        normalize_any(each, known_content);
    });
    return canonical(*message);
}

std::string generate_for(
    TextualFormat format, const std::vector<MessageType> &types, const MessageType &type, Random &random) {
    while (true) {
        std::string encoded = canonical(*Fitter(format, types, random).message(type));
        if (parse_with_cpp(type, encoded, deepest_generated) != nullptr) return encoded;
    }
}

}  // namespace differential
