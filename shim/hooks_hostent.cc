// gethostbyname() and its kin: the real function answers, and what it said is known to connect().

#include <netdb.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>

#include "shim/bridged_host.h"
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
  if (!may_bridge() || !hooks_live() || judge_lookup(name, nullptr) != pass_reason::none)
    return nullptr;
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

hostent* answered(const char* name, hostent* answer) {
  if (answer == nullptr) return nullptr;
  remember(name, answer);
  return answer;
}

// The caller's own memory; the results are libc's, or those of the bridged name.
int answered_r(const char* name, int af, int code, hostent* space, char* buffer, size_t size,
               hostent** answer, int* resolver_error) {
  if (code == 0 && *answer != nullptr) {
    remember(name, *answer);
    return code;
  }
  in_addr found;
  errno_saver keep;
  const int error = *resolver_error;
  const happy_engine* engine =
      af == AF_INET && is_absent(error) ? engine_for_bridge(name) : nullptr;
  if (engine == nullptr || !bridge_host(engine, name, found)) {
    *resolver_error = error;
    return code;
  }
  constexpr std::size_t boundary = alignof(host_parts);
  const std::size_t skipped =
      (boundary - reinterpret_cast<std::uintptr_t>(buffer) % boundary) % boundary;
  if (size < skipped + sizeof(host_parts)) {
    *answer = nullptr;
    *resolver_error = NETDB_INTERNAL;
    return ERANGE;
  }
  fill(*space, *reinterpret_cast<host_parts*>(buffer + skipped), name, found);
  *answer = space;
  *resolver_error = 0;
  return 0;
}

}  // namespace
}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) hostent* gethostbyname(const char* name) {
  hostent* answer = happy::answered(name, happy::real_gethostbyname.get()(name));
  return answer != nullptr ? answer : happy::bridged(name);
}

__attribute__((visibility("default"))) hostent* gethostbyname2(const char* name, int af) {
  hostent* answer = happy::answered(name, happy::real_gethostbyname2.get()(name, af));
  return answer != nullptr || af != AF_INET ? answer : happy::bridged(name);
}

__attribute__((visibility("default"))) int gethostbyname_r(const char* name, hostent* space,
                                                           char* buffer, size_t size,
                                                           hostent** answer, int* resolver_error) {
  const int code =
      happy::real_gethostbyname_r.get()(name, space, buffer, size, answer, resolver_error);
  return happy::answered_r(name, AF_INET, code, space, buffer, size, answer, resolver_error);
}

__attribute__((visibility("default"))) int gethostbyname2_r(const char* name, int af,
                                                            hostent* space, char* buffer,
                                                            size_t size, hostent** answer,
                                                            int* resolver_error) {
  const int code =
      happy::real_gethostbyname2_r.get()(name, af, space, buffer, size, answer, resolver_error);
  return happy::answered_r(name, af, code, space, buffer, size, answer, resolver_error);
}

}  // extern "C"
