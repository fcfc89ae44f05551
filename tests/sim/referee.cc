#include "tests/sim/referee.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "resolver/intent.h"
#include "tests/sim/lookup.h"

namespace happy::sim {
namespace {

constexpr duration resolution_delay = milliseconds(50);

bool is_sure(const path& p) {
  return p.routed && p.reply == answers_with::syn_ack && p.loss_percent == 0 &&
         p.dark_until == p.dark_from;
}

// The place of a target in the order that was drawn; past the end for what is none.
std::size_t place_of(const resolution& r, const std::string& name) {
  std::size_t i = 0;
  while (i < r.services().size() && r.services()[i].record.target != name) ++i;
  return i;
}

bool has_answer(const resolution& r, const std::string& name) {
  return r.answered(name, record_type::aaaa) != nullptr &&
         r.answered(name, record_type::a) != nullptr;
}

}  // namespace

// ---- the lookup

// spec: XMPP-1 XMPP-3 XMPP-6
void referee::queried(const resolution& r, std::size_t query, time_point now) {
  if (world_.targets.empty() || r.type_of(query) == record_type::srv) return;
  const std::string& name = r.name_of(query);
  const bool is_second = r.type_of(query) == record_type::a;
  if (is_second && (r.name_of(query - 1) != name || last_query_ != now))
    return fail("A of a target not right after its AAAA", now);
  last_query_ = now;
  const std::size_t place = place_of(r, name);
  const bool follows_target = r.type_of(query - 1) == record_type::a;
  if (!is_second && follows_target && name != domain &&
      place != place_of(r, r.name_of(query - 1)) + 1) {
    return fail("targets asked for in another order than was drawn", now);
  }
  for (std::size_t i = 0; i < place && i < r.services().size(); ++i) {
    const std::string& before = r.services()[i].record.target;
    const std::uint32_t theirs = priority_of_name(before);
    if (theirs > priority_of_name(name)) fail("a worse priority before a better one", now);
    if (theirs < priority_of_name(name) && !has_answer(r, before) && !is_given_up(theirs, now))
      fail("asked for before the priority before it has its answers", now);
  }
  asked_at_.emplace(priority_of_name(name), now);
}

// It was asked for, and then waited for.
bool referee::is_given_up(std::uint32_t priority, time_point now) const {
  const auto asked = asked_at_.find(priority);
  if (asked == asked_at_.end()) return false;
  return now >= std::min(asked->second + srv_targets_patience, time_point(resolver_patience));
}

// How long a lookup without SRV records takes to an address; never: there is none.
duration referee::bare_lookup() const {
  duration soonest = duration::max();
  for (const path& p : world_.paths) {
    const query_fate& f = p.where.family == family::ipv6 ? world_.aaaa : world_.a;
    if (p.target >= world_.targets.size() && f.reply == dns_reply::positive)
      soonest = std::min(soonest, f.after);
  }
  return soonest;
}

// However silent the targets are: what is found without SRV records is found in the end, each priority having had
// its patience before.
void referee::check_last_chance(const resolution& r, time_point now) {
  const duration bare = bare_lookup();
  if (bare >= resolver_round) return;
  if (!r.any_positive()) return fail("no address, but without SRV records there would be one", now);
  std::set<std::uint32_t> priorities;
  for (const srv_target& t : world_.targets) priorities.insert(t.priority);
  const duration patience = srv_answer_patience + priorities.size() * srv_targets_patience;
  if (now > time_point(patience + bare + resolution_delay)) fail("too late for an address", now);
}

std::uint32_t referee::priority_of_name(const std::string& name) const {
  for (std::size_t i = 0; i < world_.targets.size(); ++i) {
    if (target_name(i) == name) return world_.targets[i].priority;
  }
  return last_priority;
}

void referee::has_address(time_point now) { first_positive_ = std::min(first_positive_, now); }

void referee::looked_up(const resolution& r, move_on reason, time_point now) {
  const bool positive = r.any_positive();
  if (reason == move_on::all_answered && !r.own_addresses_answered()) fail("not all answered", now);
  if (!positive && reason != move_on::all_answered && now < time_point(resolver_patience))
    fail("the lookup ended without an address", now);
  if (positive && !world_.waits_for_all && now > first_positive_ + resolution_delay)
    fail("the lookup waited beyond the Resolution Delay", now);
  if (!world_.targets.empty()) check_srv_lookup(r, reason, now);
}

// spec: XMPP-4 XMPP-6
void referee::check_srv_lookup(const resolution& r, move_on reason, time_point now) {
  const bool refused = world_.srv_refuses && world_.srv.reply == dns_reply::positive &&
                       world_.srv.after <= srv_answer_patience;
  if (r.not_available() != refused) fail("whether the service is there was misread", now);
  if (refused) return;
  check_last_chance(r, now);
  if (!r.any_positive() && reason == move_on::all_answered && !has_answer(r, domain))
    fail("no address, and the name's own were not asked for", now);
  if (reason == move_on::all_answered || reason == move_on::deadline ||
      now >= first_positive_ + resolution_delay) {
    return;
  }
  for (const resolution::service& s : r.services()) {
    for (const record_type type : {record_type::aaaa, record_type::a}) {
      const answer* a = r.answered(s.record.target, type);
      if (a != nullptr && a->kind == answer_kind::positive) return;
      if (a == nullptr && !is_given_up(priority_of_name(s.record.target), now))
        return fail("gone on although the first target has not answered", now);
    }
  }
}

// ---- the race

void referee::began(const endpoint& named, time_point now) {
  named_ = named;
  began_ = now;
}

void referee::listed(const std::vector<listed_endpoint>& sorted, const resolution& r, bool complete,
                     time_point now) {
  expected_ = plan_of(sorted);
  complete_ = complete;
  list_changed_ = now;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (priority_of(world_, path_of(sorted[i - 1].where)) >
        priority_of(world_, path_of(sorted[i].where)))
      fail("a worse priority before a better one", now);
  }
  if (!world_.targets.empty()) check_weights(sorted, r, now);
}

// spec: XMPP-5
void referee::check_weights(const std::vector<listed_endpoint>& sorted, const resolution& r,
                            time_point now) {
  const bool has_history = std::any_of(world_.paths.begin(), world_.paths.end(),
                                       [](const path& p) { return p.remembered != duration(0); });
  if (has_history) return;  // its rule comes before that of weights
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const path& a = path_of(sorted[i - 1].where);
    const path& b = path_of(sorted[i].where);
    const bool are_alike = a.where.family == b.where.family && a.routed == b.routed &&
                           priority_of(world_, a) == priority_of(world_, b);
    if (are_alike && place_of(r, target_name(a.target)) > place_of(r, target_name(b.target)))
      fail("a target before another that was drawn before it", now);
  }
}

// The plan as the specification words it, made without haste.
std::vector<endpoint> referee::plan_of(const std::vector<listed_endpoint>& sorted) const {
  const int count = world_.timing.preferred_family_count;
  std::vector<endpoint> result{named_};
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::vector<endpoint> families[2];
    std::size_t end = begin;
    for (; end < sorted.size() && sorted[end].group == sorted[begin].group; ++end) {
      const endpoint& e = sorted[end].where;
      if (e != named_) families[e.address.family == family::ipv6 ? 1 : 0].push_back(e);
    }
    const bool first_group = begin == 0;
    family leading = named_.address.family;
    for (std::size_t i = end; !first_group && i-- > begin;) {
      if (sorted[i].where != named_) leading = sorted[i].where.address.family;
    }
    std::vector<endpoint>& lead = families[leading == family::ipv6 ? 1 : 0];
    std::vector<endpoint>& follow = families[leading == family::ipv6 ? 0 : 1];
    std::size_t a = 0;
    std::size_t b = 0;
    for (int i = first_group ? 1 : 0; i < count && a < lead.size(); ++i)
      result.push_back(lead[a++]);
    while (a < lead.size() || b < follow.size()) {
      if (b < follow.size()) result.push_back(follow[b++]);
      if (a < lead.size()) result.push_back(lead[a++]);
    }
    begin = end;
  }
  return result;
}

void referee::started(const endpoint& where, time_point now) {
  if (decided_) fail("an attempt after the end", now);
  if (is_started(where)) fail("an endpoint attempted twice", now);
  const endpoint* next = first_unstarted();
  if (next == nullptr || *next != where) fail("not the next of the plan", now);
  if (!attempts_.empty()) check_spacing(where, now);
  attempts_.push_back({where, &path_of(where), now, true});
  hurried_ = false;
  floor_ = now + demanded_floor_;
}

// spec: XMPP-2
void referee::check_spacing(const endpoint& where, time_point now) {
  if (now < floor_) return fail("two attempts within the floor", now);
  const time_point turn = turn_of(path_of(where));
  if (now < turn) return fail("a priority before the one before it is exhausted", now);
  const time_point due = std::max(attempts_.back().at + delay_after_last(), turn);
  if (hurried_ || now == due) return;
  if (now < due && !may_come_sooner(now)) return fail("sooner than the delay", now);
  if (now > due && now != list_changed_) return fail("later than the delay", now);
}

// When every better priority has been given its patience; in the past where all its attempts have failed.
time_point referee::turn_of(const path& p) const {
  time_point turn = time_point::min();
  if (world_.targets.empty()) return turn;
  bool alive = false;
  for (const attempt& a : attempts_) {
    if (priority_of(world_, *a.by) >= priority_of(world_, p)) continue;
    alive = alive || a.open;
    duration patience = world_.timing.group_patience;
    if (world_.program_deadline != duration(0))
      patience = std::min(patience, (began_ + world_.program_deadline - a.at) / 2);
    turn = std::max(turn, a.at + patience);
  }
  return alive ? turn : time_point::min();
}

// ATTEMPT-4 and 5 in other words than racer/timing.h has.
duration referee::delay_after_last() const {
  const race_timing& t = world_.timing;
  const path& last = *attempts_.back().by;
  if (t.profile == timing_profile::fast) {
    duration d = milliseconds(50);
    for (std::size_t i = 1; i < attempts_.size() && d < t.attempt_delay; ++i) d += d;
    return std::max(d < t.attempt_delay ? d : t.attempt_delay, duration(milliseconds(10)));
  }
  duration d = last.remembered != duration(0) ? last.remembered : t.attempt_delay;
  if (!last.lately && d > t.attempt_delay) d = t.attempt_delay;
  if (d < t.minimum_delay) d = t.minimum_delay;
  if (d > t.maximum_delay) d = t.maximum_delay;
  return std::max(d, duration(milliseconds(10)));
}

bool referee::may_come_sooner(time_point now) const {
  if (world_.program_deadline != duration(0)) return true;
  return now >= attempts_.back().at + world_.timing.minimum_delay;  // CHANGE-4
}

void referee::unreachable() {
  attempts_.back().open = false;
  floor_ = time_point::min();
  hurried_ = true;
}

void referee::heard(std::size_t path, fate how) {
  for (attempt& a : attempts_) {
    if (a.by != &world_.paths[path]) continue;
    if (how != fate::troubled) a.open = false;
    if (how == fate::connected) a.connected = true;
  }
  hurried_ = hurried_ || how != fate::connected;
}

// V6ONLY-8
void referee::asked_last_resort(time_point now) {
  if (last_resort_open_ || !has_reserve()) fail("a last resort that is none", now);
  if (!complete_ || first_unstarted() != nullptr)
    fail("the last resort before the end of the list", now);
  if (in_flight() > 0 && now < attempts_.back().at + world_.timing.last_resort_delay)
    fail("the last resort too early", now);
  last_resort_open_ = true;
}

// The machine waits for events alone: nothing is left, or too much is under way.
void referee::waits_for_events(const race& machine, time_point now) {
  if (first_unstarted() != nullptr && machine.in_flight() < max_attempts_in_flight)
    fail("no timer although an endpoint is left", now);
  if (first_unstarted() == nullptr && complete_ && has_reserve() && !last_resort_open_)
    fail("no timer although the last resort is left", now);
  if (machine.in_flight() != in_flight()) fail("attempts under way are miscounted", now);
}

void referee::decided(bool won, const endpoint& winner, time_point now) {
  if (decided_) fail("a second decision", now);
  decided_ = true;
  if (won) {
    const bool has_connected =
        std::any_of(attempts_.begin(), attempts_.end(),
                    [&](const attempt& a) { return a.where == winner && a.connected; });
    if (!has_connected) fail("a winner that has not connected", now);
    return;
  }
  if (in_flight() > 0) fail("lost while an attempt is under way", now);
  if (!complete_ || first_unstarted() != nullptr) fail("lost with endpoints left", now);
  if (has_reserve() && !last_resort_open_) fail("lost without the last resort", now);
}

void referee::ended(bool won, bool left, time_point now) {
  if (left) return;
  for (const attempt& a : attempts_) {
    if (is_sure(*a.by) && !won) return fail("lost although an endpoint answers", now);
  }
  check_promptness(won, now);
}

// An endpoint that answers, listed all the time, is reached once all before it had their delay, and each
// priority before its own its patience.
void referee::check_promptness(bool won, time_point now) {
  if (!world_.changes.empty()) return;
  const race_timing& t = world_.timing;
  const duration longest = std::max({t.maximum_delay, t.attempt_delay, t.minimum_delay});
  const duration patience = world_.targets.empty() ? duration(0) : t.group_patience;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const path& p = path_of(expected_[i]);
    if (!is_sure(p)) continue;
    const duration bound =
        late_answer_lifetime + static_cast<int>(i) * (longest + patience) + p.rtt;
    if (!won || now - began_ > bound) fail("an endpoint that answers was not reached in time", now);
  }
}

// ---- what is known

const path& referee::path_of(const endpoint& where) const {
  return *std::find_if(world_.paths.begin(), world_.paths.end(),
                       [&](const path& p) { return p.where == where.address; });
}

bool referee::is_started(const endpoint& where) const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [&](const attempt& a) { return a.where == where; });
}

const endpoint* referee::first_unstarted() const {
  const auto found = std::find_if(expected_.begin(), expected_.end(),
                                  [&](const endpoint& e) { return !is_started(e); });
  return found == expected_.end() ? nullptr : &*found;
}

bool referee::has_reserve() const {
  return std::any_of(world_.paths.begin(), world_.paths.end(),
                     [](const path& p) { return p.in_reserve; });
}

std::size_t referee::in_flight() const {
  return static_cast<std::size_t>(
      std::count_if(attempts_.begin(), attempts_.end(), [](const attempt& a) { return a.open; }));
}

void referee::fail(const char* what, time_point now) {
  if (!violation_.empty()) return;
  std::ostringstream text;
  text << what << ", at " << static_cast<double>(now.time_since_epoch().count()) / 1e6 << " ms";
  violation_ = text.str();
}

}  // namespace happy::sim
