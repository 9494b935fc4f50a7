#include "textual_exceptions.h"

#include <regex.h>  // of POSIX: with sanitizers gcc warns of C++'s, which recurses for each character, too

#include <algorithm>
#include <stdexcept>

namespace differential {

const Exception *explain(const Exceptions &exceptions, const Comparison &comparison) {
    const Parsed &engine = comparison.engine;
    // Input that is not UTF-8 is refused before there is a message.
    if (!engine.accepted() && engine.message == nullptr) return nullptr;
    const std::vector<Exception> &list = !engine.accepted()         ? exceptions.refusals
                                         : comparison.peer.accepted ? exceptions.contents
                                                                    : exceptions.acceptances;
    for (const Exception &exception : list) {
        if (exception.applies(comparison)) return &exception;
    }
    return nullptr;
}

const LifelineField *failed_field(const Comparison &comparison) {
    const LifelineMessageTable *table = comparison.engine.message;
    for (uint32_t index = 0; table != nullptr && index < table->field_count; index += 1) {
        if (table->fields[index].number == comparison.engine.field_number) return &table->fields[index];
    }
    const LifelineMessageTable *extension =
        find_extension(nullptr, table, comparison.engine.field_number, nullptr, 0);
    return extension == nullptr ? nullptr : extension->fields;
}

bool contains(std::string text, const char *pattern) {
    std::replace(text.begin(), text.end(), '\0', '\1');  // regexec would end there
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0) throw std::runtime_error(pattern);
    bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return found;
}

bool matches(const std::string &text, const std::string &pattern) {
    return contains(text, ("^(" + pattern + ")$").c_str());
}

bool peer_says(const Comparison &comparison, const char *words) {
    return comparison.peer.result.find(words) != std::string::npos;
}

}  // namespace differential
