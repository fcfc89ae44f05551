// gethostbyname() and its kin: our own lookups answer, or the real function; what was said is known to connect().

#include <netdb.h>
#include <netinet/in.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shim/base/raw_syscall.h"
#include "shim/engine_visit.h"
#include "shim/host_lookup.h"
#include "shim/late_function.h"
#include "shim/libc_queries.h"
#include "shim/loader.h"
#include "shim/policy.h"
#include "shim/process.h"
#include "shim/silent_nameservers.h"
#include "shim/stack_room.h"

namespace happy {
namespace {

constinit late_function<decltype(&::gethostbyname)> real_gethostbyname{"gethostbyname"};
constinit late_function<decltype(&::gethostbyname2)> real_gethostbyname2{"gethostbyname2"};
constinit late_function<decltype(&::gethostbyname_r)> real_gethostbyname_r{"gethostbyname_r"};
constinit late_function<decltype(&::gethostbyname2_r)> real_gethostbyname2_r{"gethostbyname2_r"};

// Numbers, and no name at all.
bool is_for_libc(const char* name) { return judge_lookup(name, nullptr) != pass_reason::none; }

// `errno` and h_errno belong to the answer.
void remember(const char* name, const hostent* answer) {
  if (answer == nullptr || !hooks_live()) return;
  if (!has_stack(lookup_stack)) return;
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

// What a hostent with one name and one IPv4 address points to.
struct host_parts {
  char* aliases[1];
  char* list[2];
  in_addr address;
  char name[HAPPY_MAX_NAME];
};

// False if it is longer than names are. What libc's own functions would do would have to be looked up at every start.
bool copy_name(char (&to)[HAPPY_MAX_NAME], const char* name) {
  for (std::size_t i = 0; i < sizeof to; ++i) {
    to[i] = name[i];
    if (name[i] == 0) return true;
  }
  return false;
}

void fill(hostent& host, host_parts& parts, const char* name, const in_addr& found) {
  parts.aliases[0] = nullptr;
  parts.list[0] = reinterpret_cast<char*>(&parts.address);
  parts.list[1] = nullptr;
  parts.address = found;
  copy_name(parts.name, name);
  host = {.h_name = parts.name,
          .h_aliases = parts.aliases,
          .h_addrtype = AF_INET,
          .h_length = sizeof found,
          .h_addr_list = parts.list};
}

const happy_engine* engine_for_bridge(const char* name) {
  if (!may_bridge() || !hooks_live()) return nullptr;
  if (!has_stack(lookup_stack)) return nullptr;
  char ignored[HAPPY_MAX_NAME];
  return foreign_process() || !copy_name(ignored, name) ? nullptr : load_engine();
}

// What libc says where a name has no IPv4 address.
bool is_absent(int error) { return error == NO_DATA || error == HOST_NOT_FOUND; }

// As libc, in memory of its own.
hostent* bridged(const char* name) {
  static constinit hostent host{};
  static constinit host_parts parts{};
  errno_saver keep;
  const happy_engine* engine = engine_for_bridge(name);
  if (engine == nullptr) return nullptr;
  int& resolver_error = *libc.h_errno_location();
  const int error = resolver_error;
  in_addr found;
  const bool bridges = is_absent(error) && bridge_host(engine, name, found);
  resolver_error = bridges ? 0 : error;
  if (!bridges) return nullptr;
  fill(host, parts, name, found);
  return &host;
}

// The engine's answer; false: libc is to be asked.
bool answered_by_engine(const char* name, int af, happy_host_space& space, int& code) {
  if (!hooks_live() || (af != AF_INET && af != AF_INET6)) return false;
  silent_nameservers::give_back();
  if (!has_stack(lookup_stack)) return false;
  const happy_engine* engine = foreign_process() ? nullptr : load_engine();
  if (engine == nullptr) return false;
  const bool answered = look_up_host(engine, name, af, space, code);
  if (answered) errno = code;  // as libc leaves it
  return answered;
}

// Names have a few addresses and one alias; who has more is libc's.
constexpr std::size_t usual_host_size = 4096;

// Where the answers of one of the functions without _r stay until its next call, as libc's own do.
class answer_place {
 public:
  // Two threads at a time get one answer after the other.
  hostent* keep(const hostent& found, const char* buffer) {
    engine_visit undisturbed;  // by signal handlers
    const bool alone = enter();
    std::memcpy(buffer_, buffer, sizeof buffer_);
    const auto moved = [&](char* old) { return buffer_ + (old - buffer); };
    host_ = found;
    host_.h_name = moved(found.h_name);
    host_.h_aliases = moved_list(found.h_aliases, moved);
    host_.h_addr_list = moved_list(found.h_addr_list, moved);
    if (alone) writer_.store(0, std::memory_order_release);
    return &host_;
  }

 private:
  // Writing takes less than a microsecond, but a busy machine may keep the writer waiting for its turn. One of another
  // process is a thread that fork() has left behind. False: somebody else is writing still.
  bool enter() {
    constexpr int patience = 1'000'000;
    const pid_t us = raw_getpid();
    for (int waited = 0; waited < patience; ++waited) {
      pid_t writer = 0;
      if (writer_.compare_exchange_strong(writer, us, std::memory_order_acquire)) return true;
      if (writer != us && writer_.compare_exchange_strong(writer, us, std::memory_order_acquire))
        return true;
      raw_syscall(SYS_sched_yield);
    }
    return false;
  }

  template <typename Moved>
  static char** moved_list(char** old, const Moved& moved) {
    auto** list = reinterpret_cast<char**>(moved(reinterpret_cast<char*>(old)));
    for (char** item = list; *item != nullptr; ++item) *item = moved(*item);
    return list;
  }

  std::atomic<pid_t> writer_{0};
  hostent host_{};
  alignas(std::max_align_t) char buffer_[usual_host_size]{};
};

// What our own lookup says; false: libc is to be asked. Its buffer is not to be on the stack while libc is.
[[gnu::noinline]] bool look_up_by_engine(const char* name, int af, answer_place& place, int& code,
                                         hostent*& answer) {
  hostent found;
  alignas(std::max_align_t) char buffer[usual_host_size];
  happy_host_space space{&found, buffer, sizeof buffer, 0, 0};
  if (!answered_by_engine(name, af, space, code)) return false;
  const bool is_found = space.resolver_error == 0;
  *libc.h_errno_location() = is_found ? space.left_error : space.resolver_error;
  answer = is_found ? place.keep(found, buffer) : nullptr;
  return true;
}

// `libc`: asks it.
template <typename Libc>
hostent* look_up(const char* name, int af, answer_place& place, const Libc& real_function) {
  if (is_for_libc(name) || !has_stack(lookup_stack)) return real_function();
  int code = 0;
  hostent* answer = nullptr;
  if (look_up_by_engine(name, af, place, code, answer)) {
    if (answer != nullptr) return answer;
  } else {
    const answering_first order;
    const silent_nameservers passed_over(code == EAI_AGAIN);
    answer = real_function();
  }
  remember(name, answer);
  return answer != nullptr || af != AF_INET ? answer : bridged(name);
}

// The bridged name in the caller's own memory, or what was answered.
int bridged_r(const char* name, int code, happy_host_space& space, hostent** answer) {
  errno_saver keep;
  const int error = space.resolver_error;
  const happy_engine* engine = is_absent(error) ? engine_for_bridge(name) : nullptr;
  in_addr found;
  if (engine == nullptr || !bridge_host(engine, name, found)) {
    space.resolver_error = error;
    return code;
  }
  constexpr std::size_t boundary = alignof(host_parts);
  const std::size_t skipped =
      (boundary - reinterpret_cast<std::uintptr_t>(space.buffer) % boundary) % boundary;
  if (space.size < skipped + sizeof(host_parts)) {
    space.resolver_error = NETDB_INTERNAL;
    return ERANGE;
  }
  fill(*space.host, *reinterpret_cast<host_parts*>(space.buffer + skipped), name, found);
  *answer = space.host;
  space.resolver_error = 0;
  return 0;
}

template <typename Libc>
int look_up_r(const char* name, int af, happy_host_space space, hostent** answer,
              int* resolver_error, const Libc& real_function) {
  if (is_for_libc(name)) return real_function();
  int code = 0;
  if (answered_by_engine(name, af, space, code)) {
    const bool is_found = space.resolver_error == 0;
    *answer = is_found ? space.host : nullptr;
    // libc's resolver leaves it there, too: it is what perl's $? shows.
    const bool asked = space.resolver_error != NETDB_INTERNAL;
    if (asked) *libc.h_errno_location() = is_found ? space.left_error : space.resolver_error;
  } else {
    const answering_first order;
    const silent_nameservers passed_over(code == EAI_AGAIN);
    code = real_function();
    space.resolver_error = *resolver_error;
    if (code == 0 && *answer != nullptr) remember(name, *answer);
  }
  const bool absent = code != 0 || *answer == nullptr;
  if (absent && af == AF_INET) code = bridged_r(name, code, space, answer);
  *resolver_error = space.resolver_error;
  return code;
}

}  // namespace
}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) hostent* gethostbyname(const char* name) {
  static constinit happy::answer_place place;
  return happy::look_up(name, AF_INET, place,
                        [&] { return happy::real_gethostbyname.get()(name); });
}

__attribute__((visibility("default"))) hostent* gethostbyname2(const char* name, int af) {
  static constinit happy::answer_place place;
  return happy::look_up(name, af, place,
                        [&] { return happy::real_gethostbyname2.get()(name, af); });
}

__attribute__((visibility("default"))) int gethostbyname_r(const char* name, hostent* space,
                                                           char* buffer, size_t size,
                                                           hostent** answer, int* resolver_error) {
  return happy::look_up_r(name, AF_INET, {space, buffer, size, 0, 0}, answer, resolver_error, [&] {
    return happy::real_gethostbyname_r.get()(name, space, buffer, size, answer, resolver_error);
  });
}

__attribute__((visibility("default"))) int gethostbyname2_r(const char* name, int af,
                                                            hostent* space, char* buffer,
                                                            size_t size, hostent** answer,
                                                            int* resolver_error) {
  return happy::look_up_r(name, af, {space, buffer, size, 0, 0}, answer, resolver_error, [&] {
    return happy::real_gethostbyname2_r.get()(name, af, space, buffer, size, answer,
                                              resolver_error);
  });
}

}  // extern "C"
