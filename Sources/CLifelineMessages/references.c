// Swift's compiler must not see the body of this function: it makes calls of `swift_retain_n` itself, but in its last
// pass, and the passes before do not expect such a call (swiftlang/swift#56105).
#include "lifeline_references.h"

// From Swift's runtime. Weak, so that programs in C alone, which never call it, can be linked.
extern void *_Nonnull swift_retain_n(void *_Nonnull object, uint32_t count) __attribute__((weak));

void lifeline_retain(void *object, uint32_t count) {
    swift_retain_n(object, count);
}
