// A getaddrinfo() of the program, from the caller's side: the steps of abi.h.
//
//   begin -> POLL -> continue -> POLL ... -> DONE or DECLINED
#pragma once

#include "racer/core.h"

namespace happy {

happy_lookup_step lookup_begin(core& c, happy_lookup& call);
happy_lookup_step lookup_continue(core& c, happy_lookup& call);
void lookup_left(core& c, const happy_lookup& call);

// Keeps what the real getaddrinfo() answered, so that connect() knows the name behind an address.
void remember(core& c, const happy_question& question, const addrinfo* list);

void remember_host(core& c, const char* name, const hostent& answer);

}  // namespace happy
