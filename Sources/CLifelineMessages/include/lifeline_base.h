// What the other headers need of the compiler: clang, and Swift with it, reads which pointers may be NULL; gcc not.
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

#endif
