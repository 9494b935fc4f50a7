#include "allocation_counter.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>

// The internal names of glibc's functions: looking them up with dlsym would call malloc before it exists.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_uint_fast64_t allocations;

uint64_t allocation_counter_value(void) {
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

size_t allocation_counter_heap_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    // Large allocations are mappings of their own.
    return info.uordblks + info.hblkhd;
}

static void count(void) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

// C++'s operator new and Swift's swift_allocObject call these.

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    count();
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    count();
    void *memory = __libc_memalign(alignment, size);
    if (memory == NULL) return ENOMEM;
    *result = memory;
    return 0;
}
