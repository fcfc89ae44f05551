// getaddrinfo_a(): libc's own threads look up; what they found becomes known to connect() when the program
// asks whether a request is done, which it has to do before it may touch the result.

#include <netdb.h>

#include <atomic>

#include "shim/engine_visit.h"
#include "shim/late_function.h"
#include "shim/loader.h"
#include "shim/policy.h"
#include "shim/process.h"

namespace happy {
namespace {

constinit late_function<int (*)(gaicb*)> real_gai_error{"gai_error"};

// Results that were seen already: a program may ask again and again.
constexpr unsigned kept = 16;
constinit std::atomic<const addrinfo*> seen[kept]{};
constinit std::atomic<unsigned> next_seen{0};

bool is_new(const addrinfo* result) {
  for (const std::atomic<const addrinfo*>& known : seen) {
    if (known.load(std::memory_order_relaxed) == result) return false;
  }
  seen[next_seen.fetch_add(1, std::memory_order_relaxed) % kept] = result;
  return true;
}

void remember(const gaicb& request) {
  if (request.ar_result == nullptr || !hooks_live() || foreign_process()) return;
  if (judge_lookup(request.ar_name, request.ar_request) != pass_reason::none) return;
  if (!is_new(request.ar_result)) return;
  errno_saver keep;
  const happy_engine* engine = load_engine();
  if (engine == nullptr) return;
  const happy_question question{request.ar_name, request.ar_service, request.ar_request};
  engine_visit visit;
  engine->remember(&question, request.ar_result);
}

}  // namespace
}  // namespace happy

extern "C" __attribute__((visibility("default"))) int gai_error(gaicb* request) noexcept {
  const int code = happy::real_gai_error.get()(request);
  if (code == 0) happy::remember(*request);
  return code;
}
