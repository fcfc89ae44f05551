// Where a hook passes a call on to.
#pragma once

namespace happy {

// The function of that name in the first library behind this one, as dlsym(RTLD_NEXT) finds it, which it asks where
// that is not plain to see; nullptr if there is none.
//
// dlsym() takes the lock that dlopen() and dlclose() hold while constructors and destructors run. These start threads
// and wait for them, and each of a thread's calls may be the first of its kind in the process. So may a forked child's,
// where the lock of dl_iterate_phdr() can be held for ever.
//
// Context:  takes no lock, as a rule.
void* find_next_function(const char* name);

// Whether that function is libc's own. Another preloaded library may stand between, which answers for a proxy or a test
// and alone knows where names may be asked for.
bool is_libcs(const char* name);

}  // namespace happy
