// What glibc makes of a name that has no addresses: what getaddrinfo() says, and whether the search goes on.
#pragma once

#include <optional>

#include "resolver/name_search.h"
#include "resolver/resolution.h"
#include "resolver/resolv_conf.h"

namespace happy {

// nullopt where it takes glibc to know.
std::optional<name_verdict> verdict_on(const resolution& state, const resolver_config& config);

// The EAI_* code that getaddrinfo() makes of it.
int error_code(name_verdict v);

// What it leaves in h_errno.
int resolver_error(name_verdict v);

// The EAI_* code by way of gethostbyname2(), for which it matters how the last query ended; nullopt where errno
// decides as the program has left it. `hollow`: all that was asked for was so.
std::optional<int> old_error_code(const name_search& search, bool hollow);

// What gethostbyname_r() says of it.
struct host_failure {
  int resolver_error = 0;  // h_errno
  int code = 0;            // an errno, or 0
};
std::optional<host_failure> host_failure_of(const name_search& search, bool hollow);

// What is left in h_errno by those names of a search that had no address; it begins with HOST_NOT_FOUND.
int left_error(const name_search& search);

// Whether aliases that lead to nothing were all that was answered.
bool is_hollow(const resolution& state);

}  // namespace happy
