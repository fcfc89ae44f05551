// The hooks of name resolution.

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include "shim/base/real_functions.h"
#include "shim/engine_calls.h"
#include "shim/host_lookup.h"
#include "shim/late_function.h"
#include "shim/late_libc.h"
#include "shim/libc_queries.h"
#include "shim/loader.h"
#include "shim/policy.h"
#include "shim/process.h"
#include "shim/serving.h"
#include "shim/silent_nameservers.h"
#include "shim/stack_room.h"
#include "shim/trace.h"

namespace happy {
namespace {

constinit late_function<decltype(&::getaddrinfo)> real_getaddrinfo{"getaddrinfo"};
constinit late_function<decltype(&::freeaddrinfo)> real_freeaddrinfo{"freeaddrinfo"};

happy_lookup_step ask(const happy_engine* engine, happy_lookup& call) {
  return ask_in_steps(call, engine->lookup_begin, engine->lookup_continue, engine->lookup_left);
}

void describe(happy_lookup& call, const happy_question& question) {
  call.question = question;
  call.bridge = 0;
  call.host = nullptr;
  call.code = 0;
  call.left_error = -1;
  call.id = 0;
  call.single_threaded = single_threaded() ? 1 : 0;
  call.complete = wants_complete_results() ? 1 : 0;
}

// Answers from the engine where it can; false: it cannot, and `code` is EAI_AGAIN if the nameservers are silent.
bool answer(const happy_engine* engine, const happy_question& question, int& code,
            addrinfo** result, int bridge = 0) {
  errno_saver keep;
  happy_lookup call;
  describe(call, question);
  call.bridge = bridge;
  const bool answered = ask(engine, call) != HAPPY_LOOKUP_DECLINED;
  code = call.code;
  if (answered && code == 0) *result = call.list;
  if (answered && call.left_error >= 0) *libc.h_errno_location() = call.left_error;
  return answered;
}

bool can_reach_pool(int socket_type) {
  return socket_type == 0 || socket_type == SOCK_STREAM ||
         (socket_type == SOCK_DGRAM && process_environment().settings.udp != 0);
}

// A name that has only IPv6, for a program that wants only IPv4.
bool is_without_ipv4(const happy_question& question, int code) {
  const bool no_address = code == EAI_NONAME || code == EAI_NODATA || code == EAI_ADDRFAMILY;
  return no_address && question.hints != nullptr && question.hints->ai_family == AF_INET &&
         can_reach_pool(question.hints->ai_socktype);
}

int bridge_or(int code, const happy_engine* engine, const happy_question& question,
              addrinfo** result) {
  if (!is_without_ipv4(question, code) || !may_bridge()) return code;
  int bridged = 0;
  addrinfo* list = nullptr;
  if (!answer(engine, question, bridged, &list, 1) || bridged != 0) return code;
  *result = list;
  return 0;
}

int resolve(const happy_engine* engine, const happy_question& question, addrinfo** result) {
  int code = 0;
  if (answer(engine, question, code, result)) return bridge_or(code, engine, question, result);
  {
    const answering_first order;
    const silent_nameservers passed_over(code == EAI_AGAIN);
    code = real_getaddrinfo.get()(question.node, question.service, question.hints, result);
  }
  if (code == 0) {
    errno_saver keep;
    engine_visit visit;
    engine->remember(&question, *result);
  }
  return bridge_or(code, engine, question, result);
}

// glibc refuses an IPv4 literal with AI_ADDRCONFIG where the host has no IPv4 address (EAI_ADDRFAMILY): the
// program would not even come to connect(). With a NAT64 it is asked again without that flag.
bool may_be_synthesised(const char* node, const addrinfo* hints, int code, sockaddr_in& literal) {
  if (code != EAI_ADDRFAMILY || hints == nullptr || (hints->ai_flags & AI_ADDRCONFIG) == 0)
    return false;
  literal = {};
  literal.sin_family = AF_INET;
  return hints->ai_family != AF_INET6 && inet_aton(node, &literal.sin_addr) != 0;
}

bool has_nat64(const sockaddr_in& literal) {
  const happy_engine* engine = foreign_process() ? nullptr : load_engine();
  if (engine == nullptr) return false;
  happy_synthesis call{};
  call.fd = -1;
  call.to = reinterpret_cast<const sockaddr*>(&literal);
  call.length = sizeof literal;
  call.may_wait = 1;
  for (;;) {
    happy_lookup_step step = HAPPY_LOOKUP_DECLINED;
    {
      engine_visit visit;
      step = engine->synthesise(&call);
    }
    if (step != HAPPY_LOOKUP_POLL) return step == HAPPY_LOOKUP_DONE;
    real->poll(call.fds, call.fd_count, call.timeout_ms);
  }
}

int resolve_literal(const char* node, const char* service, const addrinfo* hints,
                    addrinfo** result) {
  const int code = real_getaddrinfo.get()(node, service, hints, result);
  sockaddr_in literal;
  if (!may_be_synthesised(node, hints, code, literal)) return code;
  errno_saver keep;
  if (!has_nat64(literal)) return code;
  addrinfo plain = *hints;
  plain.ai_flags &= ~AI_ADDRCONFIG;
  return real_getaddrinfo.get()(node, service, &plain, result);
}

int hook_getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                     addrinfo** result) {
  if (current_phase.load(std::memory_order_acquire) == phase::early) initialise_early();
  if (!hooks_live()) return real_getaddrinfo.get()(node, service, hints, result);
  silent_nameservers::give_back();

  const pass_reason reason = judge_lookup(node, hints);
  if (reason != pass_reason::none) {
    trace_pass("getaddrinfo", reason);
    return reason == pass_reason::numeric ? resolve_literal(node, service, hints, result)
                                          : real_getaddrinfo.get()(node, service, hints, result);
  }
  const bool possible = !foreign_process() && has_stack(lookup_stack);
  const happy_engine* engine = possible ? load_engine() : nullptr;
  if (engine == nullptr) {
    trace_pass("getaddrinfo", pass_reason::engine_missing);
    return real_getaddrinfo.get()(node, service, hints, result);
  }
  return resolve(engine, {node, service, hints}, result);
}

}  // namespace

bool look_up_host(const happy_engine* engine, const char* name, int af, happy_host_space& space,
                  int& code) {
  addrinfo hints{};
  hints.ai_family = af;
  hints.ai_socktype = SOCK_STREAM;
  happy_lookup call;
  describe(call, {name, nullptr, &hints});
  call.host = &space;
  const bool answered = ask(engine, call) != HAPPY_LOOKUP_DECLINED;
  code = call.code;
  return answered;
}

bool bridge_host(const happy_engine* engine, const char* name, in_addr& found) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  int code = 0;
  addrinfo* list = nullptr;
  if (!answer(engine, {name, nullptr, &hints}, code, &list, 1) || code != 0) return false;
  found = reinterpret_cast<const sockaddr_in*>(list->ai_addr)->sin_addr;
  real_freeaddrinfo.get()(list);
  return true;
}

}  // namespace happy

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* node,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** result) {
  return happy::hook_getaddrinfo(node, service, hints, result);
}
