// Options for AddressSanitizer of a preloaded library: its runtime is to say what it does.

const char* __asan_default_options(void) { return "verbosity=1:detect_leaks=0"; }
