// The engine's C headers for C++.
#pragma once

extern "C" {
#include <protobuf-c/protobuf-c.h>

#include "lifeline_arena.h"
#include "lifeline_message.h"
#include "lifeline_table.h"

// NULL when it is linked with an engine that has no such function.
__attribute__((weak)) decltype(lifeline_message_decode) lifeline_message_decode_plain;
}
