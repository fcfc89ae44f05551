// Where a hook passes a call on to.
#pragma once

namespace happy {

// The function of that name in the first library behind this one, as dlsym(RTLD_NEXT) finds it, which it asks where
// that is not plain to see; nullptr if there is none.
//
// dlsym() takes the lock that dlopen() and dlclose() hold while constructors and destructors run. These start threads
// and wait for them, and each of a thread's calls may be the first of its kind in the process.
//
// Context:  not in signal handlers.
void* find_next_function(const char* name);

// The library that an address belongs to, as dladdr() finds it; nothing: none.
struct mapped_library {
  const void* base;
  const char* name;  // the loader's
};
mapped_library library_at(const void* address);

}  // namespace happy
