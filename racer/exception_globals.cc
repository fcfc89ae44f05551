// The C++ runtime keeps two words per thread for exceptions and gets them, in a library that is loaded
// late, from a dynamic TLS block: at the first throw of a thread, by malloc(), and the loader ends the
// process if that fails. A throw for want of memory is just what must not end the process, so the words
// live in the static TLS block here.

#include <cxxabi.h>

#include <cstdlib>
#include <exception>

namespace {

struct exception_words {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

__attribute__((tls_model("initial-exec"))) thread_local constinit exception_words words{};

}  // namespace

namespace __cxxabiv1 {

extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept {
  return reinterpret_cast<__cxa_eh_globals*>(&words);
}

extern "C" __cxa_eh_globals* __cxa_get_globals_fast() noexcept {
  return reinterpret_cast<__cxa_eh_globals*>(&words);
}

}  // namespace __cxxabiv1

// The runtime's own prints the exception's name, by 40 KB of code; here nothing is ever printed.
namespace __gnu_cxx {

void __verbose_terminate_handler() { std::abort(); }

}  // namespace __gnu_cxx
