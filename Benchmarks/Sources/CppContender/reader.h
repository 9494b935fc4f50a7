#pragma once

#include <cstdint>

#include "benchmark/chat.pb.h"

// Sums of the fields that the cases parse-read-3 and parse-read-all read.
uint64_t three_fields(const benchmark::Envelope &envelope);
uint64_t three_fields(const benchmark::SyncBatch &batch);
uint64_t all_fields(const benchmark::Envelope &envelope);
uint64_t all_fields(const benchmark::SyncBatch &batch);
