// The hooks of name resolution.

#include <netdb.h>

#include "shim/base/real_functions.h"
#include "shim/engine_visit.h"
#include "shim/loader.h"
#include "shim/policy.h"
#include "shim/process.h"
#include "shim/trace.h"

namespace happy {
namespace {

// Answers from the engine where it can; else from the real function, whose result the engine keeps.
int resolve(const happy_engine* engine, const happy_question& question, bool engine_may_answer,
            addrinfo** result) {
  if (engine_may_answer) {
    engine_visit visit;
    errno_saver keep;
    const int answer = engine->resolve(&question, result);
    if (answer != HAPPY_DECLINED) return answer;
  }
  const int answer = real->getaddrinfo(question.node, question.service, question.hints, result);
  if (answer == 0) {
    engine_visit visit;
    errno_saver keep;
    engine->remember(&question, *result);
  }
  return answer;
}

int hook_getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  initialise();
  if (real == nullptr) return EAI_SYSTEM;  // libc itself has no getaddrinfo: nothing to fall back on
  if (!hooks_live()) return real->getaddrinfo(node, service, hints, result);

  const pass_reason reason = judge_lookup(node, hints);
  if (reason != pass_reason::none && reason != pass_reason::passive) {
    trace_pass("getaddrinfo", reason);
    return real->getaddrinfo(node, service, hints, result);
  }
  const happy_engine* engine = foreign_process() ? nullptr : load_engine();
  if (engine == nullptr) {
    trace_pass("getaddrinfo", pass_reason::engine_missing);
    return real->getaddrinfo(node, service, hints, result);
  }
  return resolve(engine, {node, service, hints}, reason == pass_reason::none, result);
}

}  // namespace
}  // namespace happy

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* node, const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** result) {
  return happy::hook_getaddrinfo(node, service, hints, result);
}
