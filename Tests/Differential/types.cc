#include "types.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>

#include <google/protobuf/api.pb.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/dynamic_message.h>

// tables.inc, which the build makes of the generated headers, has TABLE(name) for each table.
#define TABLE(name) extern "C" const LifelineMessageTable name;
#include "tables.inc"
#undef TABLE

namespace differential {

using google::protobuf::Descriptor;
using google::protobuf::Message;

namespace {

#define TABLE(name) &name,
const LifelineMessageTable *const tables[] = {
#include "tables.inc"
};
#undef TABLE

[[noreturn]] void fail(const std::string &problem) {
    std::cerr << "differential: " << problem << "\n";
    std::exit(70);
}

class DynamicTypes {
public:
    explicit DynamicTypes(const std::string &path) : pool_(&database_), factory_(&pool_) {
        std::ifstream file(path, std::ios::binary);
        google::protobuf::FileDescriptorSet set;
        if (!set.ParseFromIstream(&file)) fail("cannot read " + path);
        for (const auto &proto : set.file()) database_.Add(proto);
    }

    const Message *prototype(const std::string &name) {
        const Descriptor *type = pool_.FindMessageTypeByName(name);
        return type == nullptr ? nullptr : factory_.GetPrototype(type);
    }

    const google::protobuf::DescriptorPool *pool() const { return &pool_; }

private:
    google::protobuf::SimpleDescriptorDatabase database_;
    google::protobuf::DescriptorPool pool_;
    google::protobuf::DynamicMessageFactory factory_;
};

DynamicTypes *dynamic_types = nullptr;

using ExtensionsOf = std::map<const LifelineMessageTable *, std::map<uint32_t, const LifelineMessageTable *>>;

ExtensionsOf extensions;

bool is_named(const LifelineMessageTable *extension, std::string_view name) {
    size_t count;
    const char *text_name = lifeline_extension_text_name(extension, &count);
    return name == extension->full_name || name == std::string_view(text_name, count);
}

// C++ has an older version of descriptors than we.
const Message *generated_prototype(const std::string &name) {
    const Descriptor *type = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
    bool is_usable = type != nullptr && type->file()->name() != "google/protobuf/descriptor.proto"
                     && type->file()->package() != "google.protobuf.compiler";
    return is_usable ? google::protobuf::MessageFactory::generated_factory()->GetPrototype(type) : nullptr;
}

}  // namespace

const LifelineMessageTable *find_extension(
    void *, const LifelineMessageTable *extended, uint32_t number, const char *name, size_t count) {
    auto of_message = extensions.find(extended);
    if (of_message == extensions.end()) return nullptr;
    if (name == nullptr) {
        auto found = of_message->second.find(number);
        return found == of_message->second.end() ? nullptr : found->second;
    }
    for (const auto &[each, extension] : of_message->second) {
        if (is_named(extension, std::string_view(name, count))) return extension;
    }
    return nullptr;
}

std::vector<MessageType> load_types(const std::string &descriptor_set_path) {
    google::protobuf::Api::default_instance();  // keeps the well-known types' classes linked
    static DynamicTypes dynamic(descriptor_set_path);
    dynamic_types = &dynamic;
    std::vector<MessageType> types;
    for (const LifelineMessageTable *table : tables) {
        if ((table->flags & LIFELINE_MESSAGE_MAP_ENTRY) != 0) continue;
        if (table->extended != nullptr) {
            extensions[table->extended].emplace(table->fields->number, table);
            continue;
        }
        const Message *prototype = generated_prototype(table->full_name);
        bool is_dynamic = prototype == nullptr;
        if (is_dynamic) prototype = dynamic.prototype(table->full_name);
        if (prototype == nullptr) fail(std::string("C++ knows no ") + table->full_name);
        auto *base = static_cast<const ProtobufCMessage *>(table->default_instance);
        types.push_back({table->full_name, table, base->descriptor, prototype, is_dynamic});
    }
    return types;
}

const google::protobuf::DescriptorPool *dynamic_pool() { return dynamic_types->pool(); }

}  // namespace differential
