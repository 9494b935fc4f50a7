// Tells which input was tested when the process crashes.
#pragma once

namespace differential {

// Has `print` called once a sanitizer, or where there are none a signal, is about to end the process.
void call_before_crash(void (*print)());

}  // namespace differential

