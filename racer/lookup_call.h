// A getaddrinfo() of the program, from the caller's side: the steps of abi.h.
//
//   begin -> POLL -> continue -> POLL ... -> DONE or DECLINED
#pragma once

#include "racer/core.h"

namespace happy {

happy_lookup_step lookup_begin(core& c, happy_lookup& call);
happy_lookup_step lookup_continue(core& c, happy_lookup& call);
void lookup_left(core& c, const happy_lookup& call);

// A lookup's result becomes known to connect(); queries still open may bring more.
// `worker_may_start`: a hidden thread may listen for those answers, because the process has threads.
void keep(core& c, intent&& meant, std::unique_ptr<lookup> open, bool worker_may_start);

struct begun_lookup {
  std::uint64_t id = 0;
  std::variant<declined, resolved, std::unique_ptr<name_resolution>> outcome;
};

// Begins a lookup, sending nothing yet. `port`: where the program connects to, if it is known; else 0.
// `bridge`: libc has no IPv4 address for it (happy_lookup::bridge). `as_host`: for gethostbyname().
begun_lookup begin_lookup(core& c, const happy_question& question, bool complete,
                          std::uint16_t port = 0, bool bridge = false, bool as_host = false);

// Keeps what the real getaddrinfo() answered, so that connect() knows the name behind an address.
void remember(core& c, const happy_question& question, const addrinfo* list);

// An SRV reply that the program has got. Nothing of it is trusted.
void notice_srv(core& c, std::span<const std::uint8_t> reply);

void remember_host(core& c, const char* name, const hostent& answer);

}  // namespace happy
