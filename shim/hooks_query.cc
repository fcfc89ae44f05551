// The hooks of res_query() and its kin. Where a program asks for the SRV records of a listed service, what it is
// answered is noticed. It gets what libc would say in any case.

#include <arpa/nameser.h>
#include <resolv.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "shim/engine_visit.h"
#include "shim/late_function.h"
#include "shim/libc_queries.h"
#include "shim/loader.h"
#include "shim/process.h"
#include "shim/silent_nameservers.h"

// Where glibc's header renames what programs write.
#undef res_query
#undef res_search
#undef res_nquery
#undef res_nsearch

namespace happy {
namespace {

using query_function = int (*)(const char*, int, int, unsigned char*, int);
using state_function = int (*)(res_state, const char*, int, int, unsigned char*, int);

constinit late_function<query_function> real_res_query{"res_query"};
constinit late_function<query_function> real_res_search{"res_search"};
constinit late_function<state_function> real_res_nquery{"res_nquery"};
constinit late_function<state_function> real_res_nsearch{"res_nsearch"};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// What follows `prefix` in `text`, in any case, or nullptr.
const char* after(const char* text, const char* prefix) {
  for (; *prefix != 0; ++prefix, ++text) {
    if (lower(*text) != *prefix) return nullptr;
  }
  return text;
}

// "_xmpp-client._tcp.example.org", if xmpp-client is listed.
bool is_listed(const char* name) {
  if (name == nullptr || *name != '_') return false;
  for (const happy_srv_service& s : process_environment().settings.srv) {
    const char* rest = s.name[0] != 0 ? after(name + 1, s.name) : nullptr;
    if (rest != nullptr && after(rest, "._tcp.") != nullptr) return true;
  }
  return false;
}

struct question {
  const char* name;
  int record_class;
  int type;
  unsigned char* answer;
  int room;
};

void notice(const question& q, int size) {
  if (q.type != ns_t_srv || q.record_class != ns_c_in || size <= 0 || !hooks_live()) return;
  if (!is_listed(q.name) || foreign_process()) return;
  errno_saver keep;
  const happy_engine* engine = load_engine();
  if (engine == nullptr) return;
  engine_visit visit;
  engine->notice_srv(q.answer, static_cast<std::size_t>(size));
}

// libc calls without one: as if no nameserver could be asked.
int no_such_function() {
  errno = ENOSYS;
  return -1;
}

enum class scope : std::uint8_t { name, search_list };

// `function`: the program's.
bool answered(const char* function, const question& q, scope s, res_state state, int& size) {
  if (q.record_class != ns_c_in || q.room <= 0) return false;
  return answer_query({q.name, q.type, q.answer, static_cast<std::size_t>(q.room), function}, state,
                      s == scope::search_list, size);
}

// `state`: what the functions with an n take first; the others have the thread's.
template <typename Function, typename... State>
int query(late_function<Function>& function, scope s, const question& q, State... state) {
  const Function ask = function.get();
  if (ask == nullptr) return no_such_function();
  silent_nameservers::give_back();
  int size = -1;
  if (!answered(function.name(), q, s, res_state{state...}, size)) {
    const answering_first order{state...};
    size = ask(state..., q.name, q.record_class, q.type, q.answer, q.room);
  }
  notice(q, std::min(size, q.room));
  return size;
}

}  // namespace
}  // namespace happy

#define HAPPY_EXPORT extern "C" __attribute__((visibility("default")))

HAPPY_EXPORT int res_query(const char* name, int record_class, int type, unsigned char* answer,
                           int room) noexcept {
  return happy::query(happy::real_res_query, happy::scope::name,
                      {name, record_class, type, answer, room});
}

HAPPY_EXPORT int res_search(const char* name, int record_class, int type, unsigned char* answer,
                            int room) noexcept {
  return happy::query(happy::real_res_search, happy::scope::search_list,
                      {name, record_class, type, answer, room});
}

HAPPY_EXPORT int res_nquery(res_state state, const char* name, int record_class, int type,
                            unsigned char* answer, int room) noexcept {
  return happy::query(happy::real_res_nquery, happy::scope::name,
                      {name, record_class, type, answer, room}, state);
}

HAPPY_EXPORT int res_nsearch(res_state state, const char* name, int record_class, int type,
                             unsigned char* answer, int room) noexcept {
  return happy::query(happy::real_res_nsearch, happy::scope::search_list,
                      {name, record_class, type, answer, room}, state);
}

// libc has each function under two names.
#define HAPPY_ALIAS(name) extern "C" __attribute__((visibility("default"), alias(name)))

HAPPY_ALIAS("res_query")
int __res_query(const char*, int, int, unsigned char*, int) noexcept;
HAPPY_ALIAS("res_search")
int __res_search(const char*, int, int, unsigned char*, int) noexcept;
HAPPY_ALIAS("res_nquery")
int __res_nquery(res_state, const char*, int, int, unsigned char*, int) noexcept;
HAPPY_ALIAS("res_nsearch")
int __res_nsearch(res_state, const char*, int, int, unsigned char*, int) noexcept;
