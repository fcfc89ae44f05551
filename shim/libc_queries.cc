#include "shim/libc_queries.h"

#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <utility>

#include "shim/engine_calls.h"
#include "shim/late_function.h"
#include "shim/loader.h"
#include "shim/next_function.h"
#include "shim/process.h"
#include "shim/stack_room.h"

namespace happy {
namespace {

constinit late_function<res_state (*)()> real_res_state{"__res_state"};
constinit late_function<int (*)(res_state)> real_res_ninit{"__res_ninit"};

// The state in which another nameserver stands first, and which place that one had.
[[gnu::tls_model("initial-exec")]] constinit thread_local res_state reordered = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local int taken_from = 0;

bool ask(const happy_engine* engine, happy_query& call) {
  const errno_saver keep;
  return ask_in_steps(call, engine->query_begin, engine->query_continue, engine->query_left) ==
         HAPPY_LOOKUP_DONE;
}

// Transfers take many messages.
bool is_single_question(int type) {
  constexpr int ixfr = 251;
  constexpr int axfr = 252;
  return type > 0 && type <= 0xffff && type != ixfr && type != axfr;
}

struct name_shape {
  bool ends_with_dot = false;
  bool escaped = false;
  unsigned dots = 0;
};

name_shape shape_of(const char* name) {
  name_shape shape;
  for (; *name != 0; ++name) {
    shape.ends_with_dot = *name == '.';
    if (shape.ends_with_dot) ++shape.dots;
    if (*name == '\\') shape.escaped = true;
  }
  return shape;
}

// Readies the thread's own state, as libc does then; one that is passed along must be ready.
bool is_ready(res_state& state) {
  if (state != nullptr) return (state->options & RES_INIT) != 0;
  state = real_res_state.get()();
  const errno_saver keep;
  return (state->options & RES_INIT) != 0 || real_res_ninit.get()(state) == 0;
}

bool is_final(const happy_query& call, bool search, const name_shape& shape) {
  const bool silent = call.size < 0;
  return call.resolver_error == 0 || silent || !search || shape.ends_with_dot;
}

}  // namespace

bool answer_query(const raw_question& q, res_state state, bool search, int& size) {
  if (!hooks_live() || q.name == nullptr || q.answer == nullptr) return false;
  if (!is_single_question(q.type) || !is_ready(state) || state->nscount < 2) return false;
  const name_shape shape = shape_of(q.name);
  if (shape.escaped) return false;  // libc alone knows which it refuses
  if (search && (shape.dots == 0 || shape.dots < state->ndots)) return false;
  const bool possible = !foreign_process() && has_stack(lookup_stack);
  const happy_engine* engine = possible ? load_engine() : nullptr;
  if (engine == nullptr || !is_libcs(q.function)) return false;
  happy_query call;
  call.state = state;
  call.name = q.name;
  call.type = q.type;
  call.answer = q.answer;
  call.room = q.room;
  call.work = nullptr;
  if (!ask(engine, call) || !is_final(call, search, shape)) return false;
  size = call.resolver_error == 0 ? call.size : -1;
  // A search begins with HOST_NOT_FOUND, and a success changes nothing.
  const int error = call.resolver_error == 0 && search ? HOST_NOT_FOUND : call.resolver_error;
  if (error != 0) *libc.h_errno_location() = state->res_h_errno = error;
  if (call.error != 0) errno = call.error;
  return true;
}

answering_first::answering_first(res_state state) {
  const happy_engine* engine = hooks_live() ? loaded_engine() : nullptr;
  if (engine == nullptr || foreign_process() || !is_ready(state) || state->nscount < 2) return;
  // What it keeps for each place goes by its number.
  if ((state->options & RES_STAYOPEN) != 0) return;
  const int first = engine->first_nameserver(state);
  if (first == 0) return;
  watch_.emplace(give_back, nullptr);
  reordered = state;
  taken_from = first;
  std::swap(state->nsaddr_list[0], state->nsaddr_list[first]);
  std::swap(state->_u._ext.nsaddrs[0], state->_u._ext.nsaddrs[first]);
}

void answering_first::give_back(void*) {
  if (reordered == nullptr) return;
  std::swap(reordered->nsaddr_list[0], reordered->nsaddr_list[taken_from]);
  std::swap(reordered->_u._ext.nsaddrs[0], reordered->_u._ext.nsaddrs[taken_from]);
  reordered = nullptr;
}

}  // namespace happy
