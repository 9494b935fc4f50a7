// Compiler support for the other headers. Nullability is for clang and Swift; gcc does not know it.
#ifndef LIFELINE_BASE_H
#define LIFELINE_BASE_H

#if defined(__clang__)
#define LIFELINE_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define LIFELINE_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#define LIFELINE_ENUM(name, type) enum name : type
#else
#define LIFELINE_ASSUME_NONNULL_BEGIN
#define LIFELINE_ASSUME_NONNULL_END
#define LIFELINE_ENUM(name, type) enum name
#define _Nullable
#define _Nonnull
#endif

// For functions that become other code for each constant they are called with: a type, or a kind of presence.
#define LIFELINE_ALWAYS_INLINE static inline __attribute__((always_inline))

// For a declaration of a constant that need not be linked: its address is then NULL.
#define LIFELINE_WEAK __attribute__((weak))

#endif
