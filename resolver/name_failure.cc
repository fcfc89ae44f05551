#include "resolver/name_failure.h"

#include <netdb.h>

#include <cerrno>

namespace happy {
namespace {

// The kinds of the answers, as bits; what has not been answered has timed out.
unsigned kinds_of_answers(const resolution& state) {
  unsigned kinds = 0;
  for (const record_type type : {record_type::aaaa, record_type::a}) {
    if (!state.asked(family_of(type))) continue;
    const answer* a = state.answered(type);
    kinds |= 1u << static_cast<unsigned>(a == nullptr ? answer_kind::timed_out : a->kind);
  }
  return kinds;
}

constexpr unsigned bit(answer_kind kind) { return 1u << static_cast<unsigned>(kind); }

constexpr unsigned no_address_at_all =
    bit(answer_kind::no_data) | bit(answer_kind::name_error) | bit(answer_kind::hollow);

refusal refusal_of(const resolution& state) {
  refusal all = refusal::unreachable;
  for (const record_type type : {record_type::aaaa, record_type::a}) {
    const answer* a = state.answered(type);
    if (a != nullptr && a->kind == answer_kind::server_failure) all = merge(all, a->refused);
  }
  return all;
}

// h_errno after nothing but failures; nullopt where it takes glibc to know.
std::optional<name_verdict> verdict_on_failure(refusal how) {
  switch (how) {
    case refusal::unreachable: return name_verdict::unreachable;
    case refusal::servfail: return name_verdict::servfail;
    case refusal::other_code: return name_verdict::out_of_time;
    case refusal::several: break;
  }
  return std::nullopt;
}

bool is_failure(name_verdict v) {
  return v == name_verdict::servfail || v == name_verdict::out_of_time ||
         v == name_verdict::unreachable;
}

}  // namespace

std::optional<name_verdict> verdict_on(const resolution& state, const resolver_config& config) {
  const unsigned kinds = kinds_of_answers(state);
  if ((kinds & bit(answer_kind::not_sent)) != 0) return std::nullopt;
  if ((kinds & bit(answer_kind::timed_out)) != 0) return name_verdict::out_of_time;
  // Over TCP glibc takes these replies for answers.
  if (kinds == bit(answer_kind::server_failure) && !config.use_vc)
    return verdict_on_failure(refusal_of(state));
  if ((kinds & ~no_address_at_all) != 0) return std::nullopt;
  if ((kinds & bit(answer_kind::hollow)) != 0) return name_verdict::hollow;
  return kinds == bit(answer_kind::no_data) ? name_verdict::no_data : name_verdict::no_name;
}

int error_code(name_verdict v) {
  if (v == name_verdict::no_data) return EAI_NODATA;
  return is_failure(v) ? EAI_AGAIN : EAI_NONAME;
}

int resolver_error(name_verdict v) {
  if (v == name_verdict::no_data) return NO_DATA;
  if (v == name_verdict::hollow) return NO_RECOVERY;
  return is_failure(v) ? TRY_AGAIN : HOST_NOT_FOUND;
}

std::optional<int> old_error_code(const name_search& search, bool hollow) {
  const name_verdict v = search.result();
  if (v == name_verdict::hollow && hollow) return EAI_NODATA;
  if (is_failure(v) && !is_failure(search.last())) return EAI_NONAME;
  if (v == name_verdict::no_name && is_failure(search.last())) return std::nullopt;
  return error_code(v);
}

std::optional<host_failure> host_failure_of(const name_search& search, bool hollow) {
  const name_verdict v = search.result();
  if (hollow || v == name_verdict::hollow) return std::nullopt;
  if (is_failure(v)) return host_failure{TRY_AGAIN, is_failure(search.last()) ? EAGAIN : 0};
  if (v == name_verdict::no_name && is_failure(search.last())) return std::nullopt;
  return host_failure{v == name_verdict::no_data ? NO_DATA : HOST_NOT_FOUND, 0};
}

int left_error(const name_search& search) {
  if (search.last() == name_verdict::no_data) return NO_DATA;
  return is_failure(search.last()) ? TRY_AGAIN : HOST_NOT_FOUND;
}

bool is_hollow(const resolution& state) {
  return kinds_of_answers(state) == bit(answer_kind::hollow);
}

}  // namespace happy
