// Can this name be answered by DNS queries of our own exactly as glibc would answer it? If so, how?
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "resolver/decline_reason.h"
#include "resolver/hosts_names.h"
#include "resolver/name_search.h"
#include "resolver/nsswitch.h"
#include "resolver/resolv_conf.h"

namespace happy {

// All files as they were at one moment. Immutable once made; shared between threads and lookups.
struct system_snapshot {
  std::variant<std::shared_ptr<const resolver_config>, decline_reason> resolver =
      decline_reason::file_unreadable;
  std::variant<std::vector<name_service>, decline_reason> services =
      decline_reason::file_unreadable;
  std::shared_ptr<const hosts_names> hosts;  // null: none
  std::string host_name;                     // gethostname()
  bool hosts_unreadable = false;
  bool gai_conf_reloads = false;  // or is unreadable: which order holds is hard to know
  bool host_aliases = false;      // HOSTALIASES is set
  bool reorders_hosts =
      false;  // "reorder on" in host.conf: gethostbyname() puts near addresses first
  std::uint64_t generation = 0;  // differs when any of this does: what was remembered is outdated
};

// How to ask for a name.
struct name_plan {
  std::string name;                // the first one to be asked, without the trailing dot
  std::vector<search_step> steps;  // all of them, never empty
  bool nothing_after_dns = false;  // dns is the last module: our own failure is glibc's
  bool goes_past_silence =
      false;  // the modules after it are asked although no nameserver has answered
  std::shared_ptr<const resolver_config> config;
};

// Pure. `node` is what the program asked for.
std::variant<name_plan, decline_reason> plan_name(std::string_view node,
                                                  const system_snapshot& files);

// The last word of host.conf on "reorder" is "on".
bool host_conf_reorders(std::string_view text);

// A line of gai.conf says "reload": libc looks at the file again, and we do not.
bool gai_conf_has_reload(std::string_view text);

}  // namespace happy
