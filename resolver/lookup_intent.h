// From what lookups have found to intents: the candidates of a name, in order.
#pragma once

#include <netdb.h>

#include <optional>
#include <string>

#include "resolver/intent.h"
#include "resolver/remembered.h"
#include "resolver/resolution.h"
#include "shim/abi.h"

namespace happy {

// An intent of the calling thread, without candidates.
intent begin_intent(std::uint64_t id, const std::string& name, int af, time_point now);

// How much of the history an order may be made with.
using with_history = std::optional<recall_from>;

// Takes what has been answered so far into the intent. True if anything changed.
bool add_answers(intent& meant, const resolution& state, with_history history);

// The intent behind a list that the real getaddrinfo() gave; `candidates` is empty if it holds nothing
// that TCP could connect to.
intent intent_of(std::uint64_t id, const happy_question& question, const addrinfo* list,
                 time_point now);

// The same for gethostbyname(name).
intent intent_of(std::uint64_t id, const char* name, const hostent& answer, time_point now);

// Takes late answers into the intent, each address in its place in the order: new ones, and the loss of hints
// that were not confirmed. True if anything changed.
bool add_late_answers(intent& meant, const resolution& state);

// The same for the A records that were asked for in the end: they join what is known.
bool add_last_resort(intent& meant, const resolution& state);

}  // namespace happy
