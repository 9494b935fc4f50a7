#include "cpp_contender.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/arena.h>
#include <google/protobuf/util/json_util.h>

#include "builder.h"
#include "reader.h"

using google::protobuf::Arena;

namespace {

// A prepared workload of any message type.
class Workload {
  public:
    virtual ~Workload() = default;
    virtual uint64_t parse() = 0;
    virtual uint64_t parse_read_3() = 0;
    virtual uint64_t parse_read_all() = 0;
    virtual uint64_t serialize() = 0;
    virtual uint64_t build_serialize() = 0;
    virtual uint64_t json_parse() = 0;
    virtual uint64_t json_print() = 0;
    virtual plain_text serialized(size_t index) = 0;
    virtual plain_text built(size_t index) = 0;
    virtual plain_text printed(size_t index) = 0;
    virtual plain_text parsed_json(size_t index) = 0;
    virtual void keep() = 0;
    virtual void release() = 0;
};

template <typename Message, typename Plain>
class WorkloadOf final : public Workload {
  public:
    WorkloadOf(const plain_text *encoded, const plain_text *json, const Plain *plain, size_t count)
        : encoded_(encoded), json_(json), plain_(plain), messages_(count), kept_(count) {
        size_t output_size = 0;
        for (size_t i = 0; i < count; i++) {
            if (!messages_[i].ParseFromArray(encoded[i].bytes, static_cast<int>(encoded[i].count))) abort();
            output_size = std::max(output_size, messages_[i].ByteSizeLong());
        }
        output_.resize(output_size);
    }

    uint64_t parse() override {
        return for_each_parsed([](const Message &) { return 1; });
    }

    uint64_t parse_read_3() override {
        return for_each_parsed([](const Message &message) { return three_fields(message); });
    }

    uint64_t parse_read_all() override {
        return for_each_parsed([](const Message &message) { return all_fields(message); });
    }

    uint64_t serialize() override {
        uint64_t sum = 0;
        for (size_t i = 0; i < messages_.size(); i++) sum += serialized(i).count;
        return sum;
    }

    uint64_t build_serialize() override {
        uint64_t sum = 0;
        for (size_t i = 0; i < messages_.size(); i++) sum += built(i).count;
        return sum;
    }

    uint64_t json_parse() override {
        uint64_t sum = 0;
        for (size_t i = 0; i < messages_.size(); i++) {
            Arena arena;
            parse_json(i, &arena);
            sum += 1;
        }
        return sum;
    }

    uint64_t json_print() override {
        uint64_t sum = 0;
        for (size_t i = 0; i < messages_.size(); i++) sum += printed(i).count;
        return sum;
    }

    plain_text printed(size_t index) override {
        text_.clear();
        if (!google::protobuf::util::MessageToJsonString(messages_[index], &text_).ok()) abort();
        return {text_.data(), text_.size()};
    }

    plain_text parsed_json(size_t index) override {
        Arena arena;
        return serialize_to_output(*parse_json(index, &arena));
    }

    plain_text serialized(size_t index) override { return serialize_to_output(messages_[index]); }

    plain_text built(size_t index) override {
        Arena arena;
        Message *message = Arena::CreateMessage<Message>(&arena);
        build(plain_[index], message);
        return serialize_to_output(*message);
    }

    void keep() override {
        for (size_t i = 0; i < kept_.size(); i++) parse(i, &kept_[i].emplace());
    }

    void release() override {
        for (auto &arena : kept_) arena.reset();
    }

  private:
    Message *parse(size_t index, Arena *arena) {
        Message *message = Arena::CreateMessage<Message>(arena);
        if (!message->ParseFromArray(encoded_[index].bytes, static_cast<int>(encoded_[index].count))) abort();
        return message;
    }

    Message *parse_json(size_t index, Arena *arena) {
        Message *message = Arena::CreateMessage<Message>(arena);
        google::protobuf::StringPiece text(json_[index].bytes, json_[index].count);
        if (!google::protobuf::util::JsonStringToMessage(text, message).ok()) abort();
        return message;
    }

    template <typename Read>
    uint64_t for_each_parsed(Read read) {
        uint64_t sum = 0;
        for (size_t i = 0; i < messages_.size(); i++) {
            Arena arena;
            sum += read(*parse(i, &arena));
        }
        return sum;
    }

    plain_text serialize_to_output(const Message &message) {
        size_t size = message.ByteSizeLong();
        message.SerializeWithCachedSizesToArray(output_.data());
        return {reinterpret_cast<const char *>(output_.data()), size};
    }

    const plain_text *encoded_;
    const plain_text *json_;
    const Plain *plain_;
    std::vector<Message> messages_;  // parsed, to be serialized
    std::deque<std::optional<Arena>> kept_;  // a deque, for an arena cannot be moved
    std::vector<uint8_t> output_;  // room for the largest message
    std::string text_;
};

void *prepare(const native_workload *workload) {
    Workload *prepared = nullptr;
    if (workload->envelopes) {
        prepared = new WorkloadOf<benchmark::Envelope, plain_envelope>(
            workload->encoded, workload->json, workload->envelopes, workload->count);
    } else {
        prepared = new WorkloadOf<benchmark::SyncBatch, plain_batch>(
            workload->encoded, workload->json, workload->batches, workload->count);
    }
    return prepared;
}

Workload &workload(void *prepared) {
    return *static_cast<Workload *>(prepared);
}

}  // namespace

const native_contender *cpp_contender() {
    static const native_contender contender = {
        prepare,
        [](void *prepared) { return workload(prepared).parse(); },
        [](void *prepared) { return workload(prepared).parse_read_3(); },
        [](void *prepared) { return workload(prepared).parse_read_all(); },
        [](void *prepared) { return workload(prepared).serialize(); },
        [](void *prepared) { return workload(prepared).build_serialize(); },
        [](void *prepared) { return workload(prepared).json_parse(); },
        [](void *prepared) { return workload(prepared).json_print(); },
        [](void *prepared, size_t index) { return workload(prepared).serialized(index); },
        [](void *prepared, size_t index) { return workload(prepared).built(index); },
        [](void *prepared, size_t index) { return workload(prepared).printed(index); },
        [](void *prepared, size_t index) { return workload(prepared).parsed_json(index); },
        [](void *prepared) { workload(prepared).keep(); },
        [](void *prepared) { workload(prepared).release(); },
        sizeof(Arena) + sizeof(void *),  // and a pointer to the message in it
    };
    return &contender;
}
