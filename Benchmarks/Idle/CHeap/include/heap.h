#pragma once

#include <stddef.h>

/// Returns how many bytes malloc has handed out, in all threads.
size_t heap_size(void);
