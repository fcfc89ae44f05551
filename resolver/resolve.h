// getaddrinfo(), answered by queries of our own where that is exactly what glibc would answer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "resolver/addrinfo_list.h"
#include "resolver/host_answer.h"
#include "resolver/intent.h"
#include "resolver/lookup.h"
#include "resolver/name_search.h"
#include "resolver/prefix_discovery.h"
#include "resolver/query_settings.h"
#include "resolver/system_files.h"
#include "shim/abi.h"

namespace happy {

struct resolve_options {
  bool v2 = false;  // RFC 8305: a positive AAAA answer is acted on at once
  duration resolution_delay = milliseconds(50);
  std::span<const known_service> services{};
  std::span<const happy_srv_service> srv{};
  // From an SRV answer that the program has got, to which this lookup belongs: see srv_answers.h.
  std::vector<service_record> companions{};
  std::uint16_t companion_port = 0;
  std::shared_ptr<const system_snapshot> files{};  // what may know the targets
  // Where the program connected to when it last named no service for this name; 0: not known.
  std::uint16_t usual_port = 0;
  bool keep_hints = false;
  bool complete =
      false;  // wait for every answer: the process compares addresses instead of connecting
  bool as_host = false;       // gethostbyname()
  bool ipv6_only = false;     // V6ONLY-1
  bool nat64_sought = false;  // of such a network: the query for a prefix is under way
  // Bridging: the program takes only IPv4, and is given this address if the name has only IPv6.
  std::optional<address> bridge{};
  prefix_list nat64{};  // of such a network: IPv4 addresses are of use although there is no IPv4
};

// Only glibc itself knows what it would answer.
struct declined {
  // The nameservers have had all the time that they get: it is to ask the modules behind dns alone.
  bool nameservers_silent = false;
};

// What getaddrinfo() returns, or gethostbyname_r().
struct resolved {
  int code = 0;                       // an EAI_* code, or an errno
  addrinfo* list = nullptr;           // the program's, if code is 0
  std::optional<int> left_error{};    // what getaddrinfo() leaves in h_errno, if it touches it
  intent meant{};                     // if code is 0
  std::optional<host_answer> host{};  // instead of `list`
  bool bridged = false;               // `list` holds the address that bridges to `meant`
  std::unique_ptr<lookup> open{};     // if queries are still outstanding
};

// One getaddrinfo() on its way: the program's wishes, and the lookup that serves them. For the thread
// that asked alone.
class name_resolution {
 public:
  // What cannot be answered, and what is answered without asking the DNS, comes back at once.
  //
  // Context:  no lock held; reads /etc/services, and interfaces for AI_ADDRCONFIG.
  // Spec:     hev3 Hostname Resolution
  static std::variant<declined, resolved, std::unique_ptr<name_resolution>> begin(
      std::uint64_t id, const happy_question& question, const system_snapshot& files,
      const resolve_options& options, time_point now);

  // Moves on; the outcome when there is one, else poll for asked().
  std::optional<std::variant<declined, resolved>> turn(time_point now);

  lookup& asked() { return *lookup_; }

  // The lookup goes on without the thread that began it.
  std::unique_ptr<lookup> release() { return std::move(lookup_); }

 private:
  name_resolution() = default;
  void ask(time_point now);
  std::optional<move_on> move_on_now(time_point now);
  std::variant<declined, resolved> outcome(time_point now);
  std::variant<declined, resolved> failure() const;
  bool wants_to_bind(const resolution& state) const;
  int left_by_success(const resolution& state) const;
  bool asks_for_both(const resolution& state) const;
  bool asks_by_old_function(const resolution& state) const;
  std::variant<declined, resolved> bridge_outcome(time_point now);
  std::variant<declined, resolved> host_outcome(resolved&& out, const resolution& state) const;

  std::uint64_t id_ = 0;
  std::string node_;
  wish wish_;
  bool complete_ = false;  // the answer is to be libc's, in libc's order
  std::uint16_t port_ = 0;
  resolve_options options_;
  name_plan plan_;
  name_search search_;
  addrinfo_template form_;
  const happy_srv_service* srv_ = nullptr;  // the lookup is for it
  bool wants_companions_ = true;
  intent meant_;
  std::unique_ptr<lookup> lookup_;
};

}  // namespace happy
