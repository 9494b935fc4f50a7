// Tells AddressSanitizer, if it is used, which bytes of a block were not handed out.
#ifndef LIFELINE_POISON_H
#define LIFELINE_POISON_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LIFELINE_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define LIFELINE_ADDRESS_SANITIZER 1
#endif

#if defined(LIFELINE_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

static inline void lifeline_poison(void *memory, size_t size) {
#if defined(LIFELINE_ADDRESS_SANITIZER)
    // gcc warns that fresh memory from malloc is used uninitialized, although only its address is.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
    __asan_poison_memory_region(memory, size);
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#else
    (void)memory;
    (void)size;
#endif
}

static inline void lifeline_unpoison(void *memory, size_t size) {
#if defined(LIFELINE_ADDRESS_SANITIZER)
    __asan_unpoison_memory_region(memory, size);
#else
    (void)memory;
    (void)size;
#endif
}

#endif
