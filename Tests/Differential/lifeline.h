// The engine's C headers for C++.
#pragma once

extern "C" {
#include <protobuf-c/protobuf-c.h>

#include "lifeline_arena.h"
#include "lifeline_extensions.h"
#include "lifeline_json.h"
#include "lifeline_message.h"
#include "lifeline_table.h"
#include "lifeline_text_format.h"
}
