// Why a lookup is left to the real getaddrinfo().
#pragma once

#include <cstdint>

namespace happy {

enum class decline_reason : std::uint8_t {
  bad_name,    // glibc may reject or rewrite it: length, labels, characters, numeric
  local_name,  // localhost, or one that myhostname answers
  in_hosts_file,
  search_list,      // with a domain of the list the name is too long, or no host name
  host_aliases,     // HOSTALIASES can replace a name without dots
  nsswitch_module,  // another module than files and dns may answer before dns, or there is no dns
  nsswitch_odd,     // a hosts line that cannot be judged
  resolver_option,  // resolv.conf or RES_OPTIONS asks for what our queries do not do
  nameserver_odd,   // a nameserver address with a scope
  gai_conf,         // the address order is one that may change or cannot be read
  file_unreadable,  // a file is there but cannot be read, or is longer than we read
};

const char* to_text(decline_reason reason);

}  // namespace happy
