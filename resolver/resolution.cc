#include "resolver/resolution.h"

#include <algorithm>
#include <iterator>
#include <random>

#include "resolver/text_scan.h"

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

// QUERY-4: the service, then AAAA, then A.
resolution::resolution(const settings& s) : settings_(s) {
  if (!settings_.service_name.empty()) {
    service_settled_ = false;
    ask(settings_.service_name, settings_.service_type);
    if (asks_srv()) return;
  }
  ask_addresses(settings_.name);
  for (const service_record& r : settings_.companions) {
    if (is_own(r.target) || may_be_asked(r)) add_target(r);
  }
  for (const service& joining : services_) ask_addresses(joining.record.target);
}

std::optional<std::size_t> resolution::find(const std::string& name, record_type type) const {
  for (std::size_t i = 0; i < queries_.size(); ++i) {
    if (queries_[i].type == type && equal_ignoring_case(queries_[i].name, name)) return i;
  }
  return std::nullopt;
}

void resolution::ask(const std::string& name, record_type type) {
  if (queries_.size() == max_queries || find(name, type)) return;
  queries_.push_back({.name = name, .type = type});
}

void resolution::ask_addresses(const std::string& name) {
  for (const family f : {family::ipv6, family::ipv4}) {
    if (asked(f) && settings_.in_reserve != f) ask(name, record_for(f));
  }
}

void resolution::handle(std::size_t number, const answer& a, time_point now) {
  if (number >= queries_.size() || queries_[number].answered) return;
  question& q = queries_[number];
  q.answered = true;
  q.since = now;
  q.what = a;
  if (asks_srv()) {
    if (!is_address(q.type)) take_srv(q.what.services);
    if (a.kind == answer_kind::positive && is_address(q.type))
      first_positive_ = std::min(first_positive_, now);
    return ask_next_targets(now);
  }
  if (!is_address(q.type)) return take_service(number, now);
  if (a.kind != answer_kind::positive) return release_reserve();
  if (first_positive_ == never) first_positive_ = now;
  if (is_own(q.name) && family_of(q.type) == settings_.preferred)
    preferred_positive_ = std::min(preferred_positive_, now);
}

// The name has no address in the family that this host could use: perhaps it has one in the other.
void resolution::release_reserve() {
  if (!settings_.in_reserve || any_positive() || !own_addresses_answered()) return;
  settings_.in_reserve.reset();
  ask_addresses(settings_.name);
}

void resolution::take_service(std::size_t number, time_point now) {
  const std::string owner = queries_[number].name;
  const std::vector<service_record> records = queries_[number].what.services;
  if (records.empty()) {
    // RFC 9460 s3: where an alias leads to no service record, its target is the endpoint.
    if (owner != settings_.service_name) use({service_record{.target = owner}}, owner);
    service_settled_ = true;
    return;
  }
  // RFC 9460 s2.4.1: beside an alias nothing else counts.
  const auto is_alias = [](const service_record& r) { return r.priority == 0; };
  std::vector<service_record> aliases;
  std::copy_if(records.begin(), records.end(), std::back_inserter(aliases), is_alias);
  if (!aliases.empty()) return follow_alias(aliases[settings_.seed % aliases.size()]);
  use(records, owner);
  service_settled_ = true;
  note_hints(now);
}

// XMPP-1.
void resolution::take_srv(const std::vector<service_record>& records) {
  if (service_settled_) return;  // gone on without it
  service_settled_ = true;
  if (records.size() == 1 && records[0].target.empty()) {
    not_available_ = true;
    srv_until_ = never;
    return;
  }
  std::vector<service_record> usable;
  std::copy_if(records.begin(), records.end(), std::back_inserter(usable),
               [this](const service_record& r) { return r.usable && may_be_asked(r); });
  std::uint32_t random = settings_.seed;
  order_srv(usable, random);
  limit_srv(usable, max_srv_targets);
  for (const service_record& r : usable) add_target(r);
}

bool resolution::may_be_asked(const service_record& r) const {
  return !settings_.in_dns || settings_.in_dns(r.target);
}

void resolution::add_target(const service_record& r) {
  if (services_.size() == max_srv_targets) return;
  services_.push_back(
      {.record = r, .rank = static_cast<std::uint16_t>(services_.size()), .srv = true});
}

// The answers of the priority that was asked for last.
bool resolution::targets_settled() const {
  return std::all_of(queries_.begin() + static_cast<std::ptrdiff_t>(targets_queries_from_),
                     queries_.end(), [this](const question& q) { return is_settled(q); });
}

// XMPP-3: when these are there, or have been waited for long enough, the next priority is asked for; after the last
// one, the name.
void resolution::ask_next_targets(time_point now) {
  while (service_settled_ && !not_available_ && !name_asked_ &&
         (targets_settled() || now >= srv_until_)) {
    srv_until_ = std::min(now + srv_targets_patience, settings_.deadline);
    targets_queries_from_ = queries_.size();
    targets_asked_from_ = targets_asked_;
    if (targets_asked_ == services_.size()) return ask_name_after_targets(now);
    const std::uint16_t priority = services_[targets_asked_].record.priority;
    for (;
         targets_asked_ < services_.size() && services_[targets_asked_].record.priority == priority;
         ++targets_asked_) {
      ask_addresses(services_[targets_asked_].record.target);
    }
  }
}

void resolution::ask_name_after_targets(time_point now) {
  name_asked_ = true;
  srv_until_ = never;
  settings_.deadline = std::max(settings_.deadline, now + settings_.last_chance);
  ask_addresses(settings_.name);
}

time_point resolution::asks_more_at() const { return asks_srv() ? srv_until_ : never; }

// It has no address, and all that was asked of it has been answered, or the patience with it is over.
bool resolution::is_passed_over(std::size_t target) const {
  for (const family f : {family::ipv6, family::ipv4}) {
    if (!asked(f)) continue;
    const answer* a = answered(services_[target].record.target, record_for(f));
    if (a == nullptr ? target >= targets_asked_from_ : a->kind == answer_kind::positive)
      return false;
  }
  return true;
}

// The name whose answers decide: the first target that has, or may have, an address. XMPP-4.
const std::string& resolution::lead() const {
  std::size_t first = 0;
  while (first < services_.size() && is_passed_over(first)) ++first;
  return by_srv() && first < services_.size() ? services_[first].record.target : settings_.name;
}

// The targets that share the lead's priority.
bool resolution::is_in_lead(const std::string& name) const {
  if (!by_srv()) return is_own(name);
  const std::string& leader = lead();
  const auto of = [this](const std::string& target) {
    return std::find_if(services_.begin(), services_.end(), [&](const service& s) {
      return equal_ignoring_case(s.record.target, target);
    });
  };
  const auto mine = of(name);
  const auto its = of(leader);
  if (mine == services_.end() || its == services_.end()) return equal_ignoring_case(name, leader);
  return mine->record.priority == its->record.priority;
}

void resolution::follow_alias(const service_record& alias) {
  const bool ends = alias.target.empty() || !alias.usable || alias_links_ == max_alias_links ||
                    find(alias.target, settings_.service_type).has_value();  // a loop
  if (ends) {  // RFC 9460 s3: resolution has failed, and the client goes on without it
    service_settled_ = true;
    return;
  }
  ++alias_links_;
  ask(alias.target, settings_.service_type);
  ask_addresses(alias.target);
}

void resolution::use(const std::vector<service_record>& records, const std::string& owner) {
  std::minstd_rand random(settings_.seed);
  for (const service_record& r : records) {
    if (!r.usable) continue;
    services_.push_back({.record = r, .rank = static_cast<std::uint16_t>(random())});
    if (r.target.empty()) services_.back().record.target = owner;
  }
  std::stable_sort(services_.begin(), services_.end(), [](const service& a, const service& b) {
    if (a.record.priority != b.record.priority) return a.record.priority < b.record.priority;
    return a.rank < b.rank;
  });
  if (services_.size() > max_services) services_.resize(max_services);
  for (const service& s : services_) ask_addresses(s.record.target);
}

// ANSWER-4: hints are positive answers.
void resolution::note_hints(time_point now) {
  for (const service& s : services_) {
    for (const address& hint : s.record.hints) {
      if (!asked(hint.family)) continue;
      first_positive_ = std::min(first_positive_, now);
      if (is_own(s.record.target) && hint.family == settings_.preferred)
        preferred_positive_ = std::min(preferred_positive_, now);
    }
  }
}

void resolution::want_all() {
  if (asks_srv()) return;  // nobody binds to the targets
  settings_.complete = true;
  settings_.in_reserve.reset();
  ask_addresses(settings_.name);
}

resolution::action resolution::poll(time_point now) {
  if (asks_srv()) {
    if (!service_settled_ && srv_until_ == never)
      srv_until_ = std::min(now + srv_answer_patience, settings_.deadline);
    if (now >= srv_until_) service_settled_ = true;
    ask_next_targets(now);
  }
  for (std::size_t i = 0; i < queries_.size(); ++i) {
    if (queries_[i].sent) continue;
    queries_[i].sent = true;
    return {.what = action::kind::query, .query = i};
  }
  move_on reason{};
  if (finished_by(reason, now)) return {.what = action::kind::finished, .reason = reason};

  return {.what = action::kind::wait,
          .until = std::min({settings_.deadline, addresses_wait_until(), asks_more_at()})};
}

// How long a resolution that has addresses waits for more.
time_point resolution::addresses_wait_until() const {
  if (!any_positive() || settings_.complete) return never;
  if (asks_srv()) return targets_wait_until();
  const time_point for_all = first_positive_ + settings_.delay;
  if (!preferred_answered() || !service_settled_) return for_all;
  // Where the preferred family has no address, nobody else is to be waited for.
  if (preferred_positive_ == never) return first_positive_;
  return std::min(for_all, preferred_positive_ + settings_.companion_delay);
}

// XMPP-4: as with one name, but the first target's answers count; others alone wait for the delay.
time_point resolution::targets_wait_until() const {
  const time_point for_all = first_positive_ + settings_.delay;
  const std::string& leader = lead();
  if (!asked(settings_.preferred)) {
    const answer* a = answered(leader, record_for(other(settings_.preferred)));
    return a == nullptr ? for_all : first_positive_;
  }
  const auto number = find(leader, record_for(settings_.preferred));
  if (!number || !queries_[*number].answered) return for_all;
  if (queries_[*number].what.kind == answer_kind::positive)
    return std::min(for_all, queries_[*number].since + settings_.companion_delay);
  const answer* a = answered(leader, record_for(other(settings_.preferred)));
  return a == nullptr && asked(other(settings_.preferred)) ? for_all : first_positive_;
}

bool resolution::finished_by(move_on& reason, time_point now) const {
  // Addresses of other targets only join the race: a lookup does not wait for them. But where there is none, SRV's
  // targets that keep silent are the last hope.
  const bool enough = any_positive() ? service_settled_ || settings_.complete : !asks_srv();
  if (all_answered() || (enough && own_addresses_answered())) {
    reason = move_on::all_answered;
    return true;
  }
  if (now >= addresses_wait_until()) {
    reason = preferred_answered() && service_settled_ ? move_on::preferred_answered
                                                      : move_on::resolution_delay;
    return true;
  }
  reason = move_on::deadline;
  return now >= settings_.deadline;
}

const answer* resolution::answered(const std::string& name, record_type type) const {
  const auto number = find(name, type);
  return number && queries_[*number].answered ? &queries_[*number].what : nullptr;
}

bool resolution::own_addresses_answered() const {
  if (asks_srv() && !service_settled_) return false;
  return std::all_of(queries_.begin(), queries_.end(), [this](const question& q) {
    return is_settled(q) || !is_address(q.type) || !is_in_lead(q.name);
  });
}

bool resolution::preferred_answered() const {
  if (preferred_positive_ != never) return true;
  return !asked(settings_.preferred) ||
         answered(lead(), record_for(settings_.preferred)) != nullptr;
}

bool resolution::is_own(const std::string& name) const {
  return equal_ignoring_case(name, settings_.name);
}

bool resolution::counts(family f) const {
  if (!asked(f) || f == family::ipv6 || !settings_.ipv4_is_substitute) return asked(f);
  const answer* ipv6 = answered(record_type::aaaa);
  return ipv6 == nullptr || ipv6->kind != answer_kind::positive;
}

bool resolution::any_positive() const {
  if (first_positive_ == never || asks_srv()) return first_positive_ != never;
  const auto has_address = [this](family f) {
    const answer* a = answered(record_for(f));
    if (a != nullptr && a->kind == answer_kind::positive) return true;
    return !replaces_hints(a) &&
           std::any_of(services_.begin(), services_.end(), [&](const service& s) {
             return is_own(s.record.target) &&
                    std::any_of(s.record.hints.begin(), s.record.hints.end(),
                                [f](const address& hint) { return hint.family == f; });
           });
  };
  return (asked(family::ipv6) && has_address(family::ipv6)) ||
         (asked(family::ipv4) && has_address(family::ipv4));
}

bool replaces_hints(const answer* a) {
  return a != nullptr && (a->kind == answer_kind::positive || a->kind == answer_kind::no_data ||
                          a->kind == answer_kind::name_error || a->kind == answer_kind::hollow);
}

bool resolution::all_answered() const {
  return std::all_of(queries_.begin(), queries_.end(),
                     [this](const question& q) { return is_settled(q); });
}

// Answered, or no answer could change anything.
bool resolution::is_settled(const question& q) const {
  return q.answered || (is_address(q.type) && !counts(family_of(q.type)));
}

}  // namespace happy
