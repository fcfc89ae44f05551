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
  if (a.kind == answer_kind::positive && first_positive_ == never) first_positive_ = now;
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

  time_point until = settings_.deadline;
  if (any_positive() && !settings_.complete) until = std::min(until, first_positive_ + settings_.delay);
  return {.what = action::kind::wait, .until = until};
}

bool resolution::finished_by(move_on& reason, time_point now) const {
  if (all_answered()) {
    reason = move_on::all_answered;
    return true;
  }
  if (any_positive() && !settings_.complete) {
    const bool preferred_spoke =
        !asked(settings_.preferred) || of(record_for(settings_.preferred)).answered;
    if (preferred_spoke) {
      reason = move_on::preferred_answered;
      return true;
    }
    if (now >= first_positive_ + settings_.delay) {
      reason = move_on::resolution_delay;
      return true;
    }
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
