// Tells which input was tested when the process crashes.
#pragma once

namespace differential {

// Calls `print` before a sanitizer ends the process. In builds without sanitizers: before a signal does.
void call_before_crash(void (*print)());

}  // namespace differential
