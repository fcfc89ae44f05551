#include "resolver/resolution.h"

#include <algorithm>

namespace happy {

const char* to_text(move_on reason) {
  switch (reason) {
    case move_on::all_answered: return "all queries answered";
    case move_on::preferred_answered: return "preferred family answered";
    case move_on::resolution_delay: return "resolution delay passed";
    case move_on::deadline: return "nameservers out of time";
  }
  return "?";
}

void resolution::handle(const answer& a, time_point now) {
  query& q = of(a.type);
  if (q.answered) return;
  q.answered = true;
  q.what = a;
  if (a.kind != answer_kind::positive) return;
  if (first_positive_ == never) first_positive_ = now;
  if (family_of(a.type) == settings_.preferred) preferred_positive_ = now;
}

resolution::action resolution::poll(time_point now) {
  // QUERY-4: back to back, AAAA before A.
  for (const record_type type : {record_type::aaaa, record_type::a}) {
    query& q = of(type);
    if (q.sent || !asked(family_of(type))) continue;
    q.sent = true;
    return {.what = action::kind::query, .type = type};
  }
  move_on reason{};
  if (finished_by(reason, now)) return {.what = action::kind::finished, .reason = reason};

  return {.what = action::kind::wait,
          .until = std::min(settings_.deadline, addresses_wait_until())};
}

// How long a resolution that has addresses waits for more.
time_point resolution::addresses_wait_until() const {
  if (!any_positive() || settings_.complete) return never;
  const time_point for_preferred = first_positive_ + settings_.delay;
  if (preferred_positive_ == never) return for_preferred;
  return std::min(for_preferred, preferred_positive_ + settings_.companion_delay);
}

bool resolution::finished_by(move_on& reason, time_point now) const {
  if (all_answered()) {
    reason = move_on::all_answered;
    return true;
  }
  if (now >= addresses_wait_until()) {
    reason = preferred_positive_ != never ? move_on::preferred_answered : move_on::resolution_delay;
    return true;
  }
  reason = move_on::deadline;
  return now >= settings_.deadline;
}

const answer* resolution::answered(record_type type) const {
  const query& q = of(type);
  return q.answered ? &q.what : nullptr;
}

int resolution::open_queries() const {
  int open = 0;
  for (const family f : {family::ipv6, family::ipv4}) {
    if (asked(f) && !of(record_for(f)).answered) ++open;
  }
  return open;
}

}  // namespace happy
