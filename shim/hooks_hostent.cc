// gethostbyname() and its kin: the real function answers, and what it said is known to connect().

#include <netdb.h>

#include "shim/engine_visit.h"
#include "shim/late_function.h"
#include "shim/loader.h"
#include "shim/policy.h"
#include "shim/process.h"

namespace happy {
namespace {

constinit late_function<decltype(&::gethostbyname)> real_gethostbyname{"gethostbyname"};
constinit late_function<decltype(&::gethostbyname2)> real_gethostbyname2{"gethostbyname2"};
constinit late_function<decltype(&::gethostbyname_r)> real_gethostbyname_r{"gethostbyname_r"};
constinit late_function<decltype(&::gethostbyname2_r)> real_gethostbyname2_r{"gethostbyname2_r"};

// `errno` and h_errno belong to the answer.
void remember(const char* name, const hostent* answer) {
  if (answer == nullptr || !hooks_live() || judge_lookup(name, nullptr) != pass_reason::none)
    return;
  errno_saver keep;
  const happy_engine* engine = foreign_process() ? nullptr : load_engine();
  if (engine == nullptr) return;
  int& resolver_error = *libc.h_errno_location();
  const int saved = resolver_error;
  {
    engine_visit visit;
    engine->remember_host(name, answer);
  }
  resolver_error = saved;
}

}  // namespace
}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) hostent* gethostbyname(const char* name) {
  hostent* answer = happy::real_gethostbyname.get()(name);
  happy::remember(name, answer);
  return answer;
}

__attribute__((visibility("default"))) hostent* gethostbyname2(const char* name, int af) {
  hostent* answer = happy::real_gethostbyname2.get()(name, af);
  happy::remember(name, answer);
  return answer;
}

__attribute__((visibility("default"))) int gethostbyname_r(const char* name, hostent* space,
                                                           char* buffer, size_t size,
                                                           hostent** answer, int* resolver_error) {
  const int code =
      happy::real_gethostbyname_r.get()(name, space, buffer, size, answer, resolver_error);
  if (code == 0) happy::remember(name, *answer);
  return code;
}

__attribute__((visibility("default"))) int gethostbyname2_r(const char* name, int af,
                                                            hostent* space, char* buffer,
                                                            size_t size, hostent** answer,
                                                            int* resolver_error) {
  const int code =
      happy::real_gethostbyname2_r.get()(name, af, space, buffer, size, answer, resolver_error);
  if (code == 0) happy::remember(name, *answer);
  return code;
}

}  // extern "C"
