// Reports the tested input when the process crashes.
#pragma once

namespace differential {

// Calls `print` before a sanitizer, or in builds without sanitizers a signal, ends the process.
void call_before_crash(void (*print)());

}  // namespace differential
