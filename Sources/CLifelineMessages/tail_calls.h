// Whether the compiler can turn a call at the end of a function into a jump, with all registers as arguments.
#ifndef LIFELINE_TAIL_CALLS_H
#define LIFELINE_TAIL_CALLS_H

#if defined(__clang__) && !defined(LIFELINE_WITHOUT_TAIL_CALLS)
#if __has_attribute(musttail) && __has_attribute(preserve_none)
#define LIFELINE_HAS_TAIL_CALLS 1
#endif
#endif

#endif
