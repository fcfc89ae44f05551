#include "resolver/v4_mapping.h"

#include <netdb.h>

#include <algorithm>

#include "resolver/address_order.h"
#include "resolver/gai_conf.h"
#include "resolver/source_address.h"

namespace happy {
namespace {

answer_kind kind_of(const answer* a) { return a == nullptr ? answer_kind::timed_out : a->kind; }

bool is_positive(const answer* a) { return a != nullptr && a->kind == answer_kind::positive; }

bool holds_mapped(const answer& a) {
  return std::any_of(a.addresses.begin(), a.addresses.end(), is_v4_mapped);
}

// glibc's `no_data` of one family: 0 where the name does not exist.
std::optional<int> no_data_of(const answer* a) {
  switch (kind_of(a)) {
    case answer_kind::name_error: return 0;
    case answer_kind::no_data: return 1;
    case answer_kind::timed_out:
    case answer_kind::server_failure: return EAI_AGAIN;
    default: return std::nullopt;
  }
}

}  // namespace

v4_mapping mapping_of(int flags, int af) {
  if (af != AF_INET6 || (flags & AI_V4MAPPED) == 0) return v4_mapping::none;
  return (flags & AI_ALL) != 0 ? v4_mapping::all : v4_mapping::substitute;
}

bool mapping_agrees(const resolution& state, v4_mapping how, bool searched) {
  const answer* ipv6 = state.answered(record_type::aaaa);
  const answer* ipv4 = state.answered(record_type::a);
  if (is_positive(ipv6) && holds_mapped(*ipv6)) return false;
  if (!searched) return true;
  const auto is_open = [](const answer* a) { return kind_of(a) == answer_kind::timed_out; };
  if (!is_positive(ipv6)) return is_open(ipv6);
  return how == v4_mapping::substitute || is_positive(ipv4) || is_open(ipv4);
}

std::vector<address> mapped_order(const resolution& state) {
  std::vector<candidate> list;
  source_probe probe;
  for (const family f : {family::ipv6, family::ipv4}) {
    const answer* found = state.answered(record_for(f));
    if (!state.counts(f) || !is_positive(found)) continue;
    for (const address& a : found->addresses) {
      list.push_back({.destination = mapped(a)});
      probe.probe(list.back(), 0);
    }
  }
  describe_sources(list);
  sort_by_preference(list, system_policy());
  std::vector<address> sorted;
  sorted.reserve(list.size());
  for (const candidate& c : list) sorted.push_back(c.destination);
  return sorted;
}

int mapped_resolver_error(const resolution& state, v4_mapping how) {
  const answer* ipv6 = state.answered(record_type::aaaa);
  if (how == v4_mapping::substitute && is_positive(ipv6)) return 0;
  switch (kind_of(state.answered(record_type::a))) {
    case answer_kind::positive: return 0;
    case answer_kind::no_data: return NO_DATA;
    case answer_kind::name_error: return HOST_NOT_FOUND;
    case answer_kind::hollow: return NO_RECOVERY;
    default: return TRY_AGAIN;
  }
}

std::optional<int> mapped_error_code(const resolution& state, const name_search& search) {
  const auto ipv6 = no_data_of(state.answered(record_type::aaaa));
  const auto ipv4 = no_data_of(state.answered(record_type::a));
  if (!ipv6 || !ipv4) return std::nullopt;
  const bool silent = ipv6 == EAI_AGAIN && ipv4 == EAI_AGAIN;
  if (search.has_list()) {
    const bool all_silent = silent && search.result() == name_verdict::out_of_time;
    return all_silent ? std::optional(EAI_AGAIN) : std::nullopt;
  }
  if (ipv6 == 0 || ipv4 == 0) return EAI_NONAME;
  return silent ? EAI_AGAIN : EAI_NODATA;
}

}  // namespace happy
