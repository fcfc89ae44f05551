#include "resolver/lookup_intent.h"

#include <algorithm>
#include <cstring>

#include "resolver/endpoints.h"
#include "resolver/gai_conf.h"
#include "resolver/query_settings.h"
#include "resolver/source_address.h"
#include "resolver/source_memory.h"
#include "resolver/trace.h"
#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

void trace_order(std::uint64_t id, const char* event, const std::vector<candidate>& list) {
  if (!trace_on()) return;
  json_line line = trace_line(event, id);
  line.list("addresses", list.size(), [&](std::size_t i) { return list[i].destination; });
  emit(line);
}

// NAT64-1
std::uint8_t translation_length(const prefix_list& prefixes, const address& a) {
  for (const nat64_prefix& p : prefixes) {
    if (a.family == family::ipv6 && embedded_ipv4(p, a)) return p.length;
  }
  return 0;
}

void recall_history(const intent& meant, std::vector<candidate>& list, with_history history) {
  if (!history) return;
  const recalled found = recall(list, meant.name, *history, meant.made);
  if (!trace_on() || found.demoted + found.used + found.paths == 0) return;
  json_line line = trace_line("history", meant.id);
  line.number("demoted", found.demoted).number("used", found.used).number("paths", found.paths);
  emit(line);
}

void put_in_order(const intent& meant, std::vector<candidate>& list) {
  source_finder sources(kernel_said::lately);
  for (candidate& c : list) {
    sources.find(c);
    c.translation_length = translation_length(meant.nat64, c.destination);
  }
  recall_history(meant, list, recall_from::memory);
  describe_sources(list, kernel_said::lately);
  sort_by_preference(list, system_policy());
}

// Puts `found` into the place of `list`, in order. False if that changes nothing.
bool replace(const intent& meant, std::vector<candidate>& list, std::vector<candidate> found,
             with_history history) {
  const auto same_endpoint = [](const candidate& a, const candidate& b) {
    return a.destination == b.destination && a.port == b.port &&
           a.service_priority == b.service_priority && a.hinted == b.hinted;
  };
  bool changed = list.size() != found.size();
  const kernel_said said = history ? kernel_said::lately : kernel_said::now;
  source_finder sources(said);
  for (candidate& c : found) {
    const auto known = std::find_if(list.begin(), list.end(), [&](const candidate& k) {
      return k.destination == c.destination;
    });
    changed = changed || std::none_of(list.begin(), list.end(),
                                      [&](const candidate& k) { return same_endpoint(k, c); });
    if (known == list.end()) {
      sources.find(c);
      c.translation_length = translation_length(meant.nat64, c.destination);
      continue;
    }
    candidate kept = *known;  // what the kernel and the past say of the address holds
    kept.port = c.port;
    kept.weight = c.weight;
    kept.in_turn = c.in_turn;
    kept.service_priority = c.service_priority;
    kept.service_rank = c.service_rank;
    kept.hinted = c.hinted;
    c = kept;
  }
  if (!changed) return false;
  recall_history(meant, found, history);
  describe_sources(found, said);
  sort_by_preference(found, system_policy());
  list = std::move(found);
  return true;
}

bool mentions(const resolution& state, const address& a) {
  const answer* found = state.answered(record_for(a.family));
  return found != nullptr &&
         std::find(found->addresses.begin(), found->addresses.end(), a) != found->addresses.end();
}

}  // namespace

intent begin_intent(std::uint64_t id, const std::string& name, int af, time_point now) {
  intent meant;
  meant.id = id;
  meant.name = name;
  meant.thread = raw_gettid();
  meant.made = now;
  meant.ipv4 = af != AF_INET6;
  meant.ipv6 = af != AF_INET;
  return meant;
}

bool add_answers(intent& meant, const resolution& state, with_history history) {
  if (meant.unconfirmed && !mentions(state, meant.candidates.front().destination)) return false;
  meant.unconfirmed = false;
  meant.by_srv = state.by_srv();
  const bool own = replace(meant, meant.candidates, own_candidates(state), history);
  const bool more =
      replace(meant, meant.service_candidates,
              service_candidates(state, meant.service_port, meant.keep_hints), history);
  if (own) trace_order(meant.id, "order", meant.candidates);
  if (more) trace_order(meant.id, "service_order", meant.service_candidates);
  return own || more;
}

intent intent_of(std::uint64_t id, const happy_question& question, const addrinfo* list,
                 time_point now) {
  const wish w = read_hints(question.hints);
  intent meant = begin_intent(id, question.node, w.af, now);
  if (w.socktype != 0 && w.socktype != SOCK_STREAM) return meant;
  // A family with very many addresses leaves room for the other.
  for (const std::size_t room : {max_addresses_per_answer, max_candidates}) {
    std::size_t taken[2] = {};
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
      endpoint where;
      if (!from_sockaddr(entry->ai_addr, entry->ai_addrlen, where)) continue;
      if (holds(meant.candidates, where.address)) continue;
      if (meant.candidates.size() == max_candidates) break;
      if (taken[where.address.family == family::ipv4 ? 0 : 1]++ >= room) continue;
      meant.candidates.push_back({.destination = where.address});
    }
  }
  put_in_order(meant, meant.candidates);
  trace_order(id, "order", meant.candidates);
  return meant;
}

intent intent_of(std::uint64_t id, const char* name, const hostent& answer, time_point now) {
  intent meant = begin_intent(id, name, answer.h_addrtype, now);
  for (char** item = answer.h_addr_list; item != nullptr && *item != nullptr; ++item) {
    if (meant.candidates.size() == max_candidates) break;
    in_addr in4{};
    in6_addr in6{};
    if (answer.h_addrtype == AF_INET) std::memcpy(&in4, *item, sizeof in4);
    if (answer.h_addrtype == AF_INET6) std::memcpy(&in6, *item, sizeof in6);
    const address where = answer.h_addrtype == AF_INET ? from_in_addr(in4) : from_in6_addr(in6);
    if (!holds(meant.candidates, where)) meant.candidates.push_back({.destination = where});
  }
  put_in_order(meant, meant.candidates);
  trace_order(id, "order", meant.candidates);
  return meant;
}

bool add_late_answers(intent& meant, const resolution& state) {
  return add_answers(meant, state, recall_from::memory);
}

bool add_last_resort(intent& meant, const resolution& state) {
  const answer* found = state.answered(record_type::a);
  if (found == nullptr) return false;
  std::vector<candidate> both = meant.candidates;
  for (const address& a : found->addresses) {
    if (both.size() < max_candidates && !holds(both, a)) both.push_back({.destination = a});
  }
  if (!replace(meant, meant.candidates, std::move(both), recall_from::memory)) return false;
  trace_order(meant.id, "order", meant.candidates);
  return true;
}

}  // namespace happy
