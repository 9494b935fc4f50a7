// Invariant: Swift's compiler sees none of this. It calls `swift_retain_n` itself, but only in its last pass, and those before
// it do not expect such a call (swiftlang/swift#56105): so it is made here, and not by a function that Swift inlines.
#include "lifeline_references.h"

// Of Swift's runtime. Weak, so that programs in C alone, which never call it, can be linked.
extern void *_Nonnull swift_retain_n(void *_Nonnull object, uint32_t count) __attribute__((weak));

void lifeline_retain(void *object, uint32_t count) {
    swift_retain_n(object, count);
}
