// /etc/gai.conf: the system's own tables for RFC 6724, as glibc reads them.
#pragma once

#include <string_view>
#include <vector>

#include "resolver/address_order.h"

namespace happy {

struct gai_conf {
  // Empty: the file has no such line, and the compiled-in table holds.
  std::vector<policy_row> labels;
  std::vector<policy_row> precedences;
  std::vector<policy_row> ipv4_scopes;

  // Points into this object.
  policy_table table() const;
};

// Longer files count as absent; lines beyond the first `max_gai_conf_rows` of one kind are ignored.
inline constexpr std::size_t max_gai_conf_bytes = 256 * 1024;
inline constexpr std::size_t max_gai_conf_rows = 1024;

// Lines that glibc ignores are ignored. Left out: "reload", glibc's own default (no) is assumed.
gai_conf parse_gai_conf(std::string_view text);

// The policy in force: that of /etc/gai.conf as it is at the first call, else glibc's own; with known-local
// ULAs if so wished. The tables live for ever.
//
// Context:  any thread; the first call reads a file.
policy_table system_policy();

// Set before the first lookup.
void prefer_known_local_ula(bool wished);

}  // namespace happy
