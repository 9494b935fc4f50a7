// Sixteen bytes at a time, on x86 processors with SSSE3 (all since 2006) and on 64-bit Arm. Others have no
// LIFELINE_MAY_HAVE_VECTORS.
#ifndef LIFELINE_VECTORS_H
#define LIFELINE_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) || defined(__aarch64__)
#define LIFELINE_MAY_HAVE_VECTORS 1

typedef uint8_t LifelineVector __attribute__((vector_size(16)));

#if defined(__x86_64__)

#include <tmmintrin.h>

#define LIFELINE_VECTOR __attribute__((target("ssse3")))

static inline bool lifeline_has_vectors(void) {
    return __builtin_cpu_supports("ssse3");
}

// The bytes `count` before those of `block`, which follows `previous`.
#define LIFELINE_BYTES_BEFORE(count, block, previous) \
    ((LifelineVector)_mm_alignr_epi8((__m128i)(block), (__m128i)(previous), 16 - (count)))

// For each byte, which is below 16, the one of `table` at that place.
LIFELINE_VECTOR static inline LifelineVector lifeline_look_up(LifelineVector table, LifelineVector places) {
    return (LifelineVector)_mm_shuffle_epi8((__m128i)table, (__m128i)places);
}

// Differences below zero are zero.
LIFELINE_VECTOR static inline LifelineVector lifeline_subtract(LifelineVector left, LifelineVector right) {
    return (LifelineVector)_mm_subs_epu8((__m128i)left, (__m128i)right);
}

#else

#include <arm_neon.h>

#define LIFELINE_VECTOR

static inline bool lifeline_has_vectors(void) {
    return true;
}

#define LIFELINE_BYTES_BEFORE(count, block, previous) ((LifelineVector)vextq_u8(previous, block, 16 - (count)))

static inline LifelineVector lifeline_look_up(LifelineVector table, LifelineVector places) {
    return vqtbl1q_u8(table, places);
}

static inline LifelineVector lifeline_subtract(LifelineVector left, LifelineVector right) {
    return vqsubq_u8(left, right);
}

#endif

#endif

#endif
