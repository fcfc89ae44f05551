// getaddrinfo(), answered by queries of our own where that is exactly what glibc would answer.
#pragma once

#include <memory>

#include "resolver/intent.h"
#include "resolver/lookup.h"
#include "resolver/system_files.h"
#include "shim/abi.h"

namespace happy {

struct resolve_options {
  duration resolution_delay = milliseconds(50);
  bool complete = false;  // wait for every answer: the process compares addresses instead of connecting
};

struct resolved {
  int code = HAPPY_DECLINED;         // an EAI_* code, or HAPPY_DECLINED: ask the real function
  addrinfo* list = nullptr;          // the program's, if code is 0
  intent meant{};                    // if code is 0
  std::unique_ptr<lookup> open{};    // if queries are still outstanding
};

// Context:  the program's thread, no lock held; blocks while the nameservers think.
// Spec:     hev3 Hostname Resolution
resolved resolve(std::uint64_t id, const happy_question& question, const system_snapshot& files,
                 const resolve_options& options);

// The intent behind a list that the real getaddrinfo() gave; `candidates` is empty if it holds nothing
// that TCP could connect to.
intent intent_of(std::uint64_t id, const happy_question& question, const addrinfo* list);

// Takes the addresses of late answers into the intent, in their place in the order.
// True if there was a new one.
bool add_late_answers(intent& meant, const resolution& state);

}  // namespace happy
