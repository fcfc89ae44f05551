#include "resolver/endpoints.h"

#include <algorithm>

#include "resolver/text_scan.h"

namespace happy {
namespace {

void add(std::vector<candidate>& list, const candidate& c) {
  if (list.size() < max_candidates && !holds(list, c)) list.push_back(c);
}

// Adds the addresses of one name and family, each made like `form`.
void add_known(std::vector<candidate>& list, const answer* found, candidate form) {
  if (found == nullptr) return;
  for (const address& where : found->addresses) {
    form.destination = where;
    add(list, form);
  }
}

void add_hints(std::vector<candidate>& list, const service_record& record, family f,
               candidate form) {
  form.hinted = true;
  for (const address& where : record.hints) {
    form.destination = where;
    if (where.family == f) add(list, form);
  }
}

// What the record of a service says of its target's addresses.
//
// A target's weight in the order is its place among the draws of RFC 2782, so that the loads are what the
// administrator wants: with the weights themselves the heaviest target would get every client.
candidate form_of(const resolution::service& s) {
  candidate form;
  form.port = s.record.port;
  form.service_priority = s.record.priority;
  if (s.srv) {
    form.weight = static_cast<std::uint16_t>(max_srv_targets - s.rank);
    form.in_turn = true;
  } else {
    form.service_rank = s.rank;
  }
  return form;
}

// glibc sorts a list in which IPv4 addresses come first; where its rules see no difference (an IPv4 address
// in IPv6's clothes) they stay there.
constexpr family both_families[] = {family::ipv4, family::ipv6};

std::vector<candidate> target_candidates(const resolution& state) {
  std::vector<candidate> list;
  for (const resolution::service& s : state.services()) {
    for (const family f : both_families) {
      if (state.asked(f))
        add_known(list, state.answered(s.record.target, record_for(f)), form_of(s));
    }
  }
  candidate fallback;
  fallback.in_turn = true;
  for (const family f : both_families) add_known(list, state.answered(record_for(f)), fallback);
  return list;
}

}  // namespace

std::vector<candidate> own_candidates(const resolution& state) {
  if (state.by_srv()) return target_candidates(state);
  std::vector<candidate> list;
  for (const family f : both_families) {
    if (!state.counts(f)) continue;
    const answer* found = state.answered(record_for(f));
    add_known(list, found, {});
    if (replaces_hints(found)) continue;
    for (const resolution::service& s : state.services()) {
      if (equal_ignoring_case(s.record.target, state.name())) add_hints(list, s.record, f, {});
    }
  }
  return list;
}

std::vector<candidate> service_candidates(const resolution& state, std::uint16_t port,
                                          bool keep_hints) {
  std::vector<candidate> list;
  if (state.by_srv()) return list;
  std::vector<candidate> outdated;
  for (const resolution::service& s : state.services()) {
    candidate form = form_of(s);
    if (form.port == port) form.port = 0;
    candidate late = form;
    late.service_priority = outdated_hint_priority;
    late.service_rank = 0;
    for (const family f : both_families) {
      if (!state.asked(f)) continue;
      const answer* found = state.answered(s.record.target, record_for(f));
      add_known(list, found, form);
      if (!replaces_hints(found)) {
        add_hints(list, s.record, f, form);
      } else if (keep_hints) {
        add_hints(outdated, s.record, f, late);
      }
    }
  }
  if (state.services().empty()) return list;
  for (const candidate& own : own_candidates(state)) add(list, own);
  for (const candidate& hint : outdated) add(list, hint);
  return list;
}

}  // namespace happy
