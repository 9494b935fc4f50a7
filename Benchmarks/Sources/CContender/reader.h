#ifndef READER_H
#define READER_H

#include "benchmark/chat.pb-c.h"

// Sums of the fields that the cases parse-read-3 and parse-read-all read.
uint64_t envelope_three_fields(const CBenchmark__Envelope *envelope);
uint64_t envelope_all_fields(const CBenchmark__Envelope *envelope);
uint64_t batch_three_fields(const CBenchmark__SyncBatch *batch);
uint64_t batch_all_fields(const CBenchmark__SyncBatch *batch);

#endif
