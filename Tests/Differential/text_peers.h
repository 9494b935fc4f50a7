// C++ libprotobuf's text format.
#pragma once

#include <string>

#include "oracle.h"
#include "textual_engine.h"
#include "types.h"

namespace differential {

// The result of C++ libprotobuf for the text: the encoded message, or the reason for refusing it.
OracleAnswer parse_text_with_cpp(const MessageType &type, const std::string &text, bool ignores_unknown);

struct CppTextSettings {
    bool in_one_line = false;
    bool short_lists = false;     // elements of repeated numbers in square brackets
    bool keeps_letters = false;   // else all but ASCII is escaped
    bool unknown_fields = false;  // by their numbers
};

std::string print_text_with_cpp(const MessageType &type, const std::string &encoded, const CppTextSettings &settings);

// The unknown fields of a message itself, encoded, and as C++ libprotobuf prints them, by their numbers.
struct UnknownFields {
    std::string encoded;
    std::string text;
    bool holds_messages_to_cpp_only;  // bytes with tags or lengths of a form that we refuse: see exceptions.cc
};

UnknownFields unknown_fields_with_cpp(const MessageType &type, const std::string &encoded);

}  // namespace differential
