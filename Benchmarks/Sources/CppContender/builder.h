#pragma once

#include "benchmark/chat.pb.h"
#include "plain_messages.h"

// Builds a message field by field in an empty one.
void build(const plain_envelope &plain, benchmark::Envelope *envelope);
void build(const plain_batch &plain, benchmark::SyncBatch *batch);
