#include "tests/sim/run.h"

#include <algorithm>
#include <memory>
#include <queue>
#include <sstream>

#include "racer/plan.h"
#include "resolver/intent.h"
#include "resolver/resolution.h"
#include "tests/sim/network.h"

namespace happy::sim {
namespace {

constexpr std::uint16_t port = 443;
constexpr const char* name = "name.test";
// What glibc would wait for silent nameservers.
constexpr duration resolver_patience = std::chrono::seconds(10);
// Nothing lasts longer: ten endpoints each way, all dead, the last begun after a minute.
constexpr duration longest_run = std::chrono::minutes(10);
constexpr int longest_drain = 100;

struct event {
  enum class kind : std::uint8_t { answer, attempt, change, late_end, deadline };
  time_point at;
  std::uint64_t order;  // of events at one moment
  kind what;
  std::uint32_t index;  // of the path, the change, or the query
  fate how{};

  friend bool operator>(const event& a, const event& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
};

// The plan as the specification words it, made without haste.
std::vector<endpoint> expected_plan(const std::vector<listed_endpoint>& sorted,
                                    const endpoint& named, int count) {
  std::vector<endpoint> result{named};
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::vector<endpoint> families[2];
    std::size_t end = begin;
    for (; end < sorted.size() && sorted[end].group == sorted[begin].group; ++end) {
      const endpoint& e = sorted[end].where;
      if (e != named) families[e.address.family == family::ipv6 ? 1 : 0].push_back(e);
    }
    const bool first_group = begin == 0;
    family leading = named.address.family;
    for (std::size_t i = end; !first_group && i-- > begin;) {
      if (sorted[i].where != named) leading = sorted[i].where.address.family;
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

class simulation {
 public:
  simulation(const world& w, const options& o)
      : world_(w), options_(o), machine_(w.timing), open_(w.paths.size(), false) {
    for (std::size_t i = 0; i < w.paths.size(); ++i) removed_.push_back(false);
  }

  outcome go() {
    look_up();
    if (out_.resolved && out_.violation.empty()) connect();
    return std::move(out_);
  }

 private:
  // ---- the lookup

  void look_up() {
    resolution::settings s;
    s.deadline = time_point(resolver_patience);
    s.name = name;
    if (world_.asks_for_service) s.service_name = name;
    s.complete = world_.waits_for_all;
    if (world_.timing.profile == timing_profile::v2) s.companion_delay = duration(0);
    resolution_ = std::make_unique<resolution>(s);
    int queries = 0;
    for (int turn = 0; turn < longest_drain; ++turn) {
      const resolution::action next = resolution_->poll(now_);
      if (next.what == resolution::action::kind::finished) return end_lookup(next.reason);
      if (next.what == resolution::action::kind::query) {
        ++queries;
        send(next.query);
        continue;
      }
      const time_point until = std::min(next.until, events_.empty() ? never : events_.top().at);
      if (until == never || until < now_) return fail("the resolution waits for nothing");
      now_ = until;
      if (!events_.empty() && events_.top().at == now_) take_event();
    }
    fail("the resolution does not end");
  }

  const query_fate& fate_of(record_type type) const {
    if (type == record_type::https) return world_.service;
    return type == record_type::aaaa ? world_.aaaa : world_.a;
  }

  void send(std::size_t query) {
    const query_fate& f = fate_of(resolution_->type_of(query));
    if (f.reply == dns_reply::silent) return;
    push(now_ + f.after, event::kind::answer, static_cast<std::uint32_t>(query));
    if (f.repeated)
      push(now_ + 2 * f.after, event::kind::answer, static_cast<std::uint32_t>(query));
  }

  void end_lookup(move_on reason) {
    const bool positive = resolution_->any_positive();
    if (reason == move_on::all_answered && !resolution_->own_addresses_answered())
      fail("not all answered");
    if (!positive && reason != move_on::all_answered && now_ < time_point(resolver_patience))
      fail("the lookup ended without an address");
    if (positive && !world_.waits_for_all && now_ > first_positive_ + milliseconds(50))
      fail("the lookup waited beyond the Resolution Delay");
    out_.resolved = positive && !list().empty();
  }

  void take_answer(std::size_t query) {
    const record_type type = resolution_->type_of(query);
    const query_fate& f = fate_of(type);
    answer a;
    a.type = type;
    switch (f.reply) {
      case dns_reply::positive: a.kind = answer_kind::positive; break;
      case dns_reply::no_data: a.kind = answer_kind::no_data; break;
      case dns_reply::name_error: a.kind = answer_kind::name_error; break;
      default: a.kind = answer_kind::server_failure; break;
    }
    if (a.kind == answer_kind::positive) {
      for (const path& p : world_.paths) {
        if (p.where.family == family_of(type) && !p.in_reserve) a.addresses.push_back(p.where);
      }
      if (a.addresses.empty()) a.kind = answer_kind::no_data;
    }
    if (a.kind == answer_kind::positive && first_positive_ == never) first_positive_ = now_;
    resolution_->handle(query, a, now_);
  }

  // What is known of the name now, in the order of preference.
  std::vector<listed_endpoint> list() const {
    std::vector<candidate> candidates;
    for (const record_type type : {record_type::aaaa, record_type::a}) {
      const answer* a = resolution_->answered(type);
      if (a == nullptr) continue;
      for (const address& where : a->addresses) {
        const std::size_t i = index_of(where);
        if (removed_[i]) continue;
        candidates.push_back(candidate_of(world_.paths[i]));
      }
    }
    for (const path& p : world_.paths) {
      if (p.in_reserve && last_resort_open_) candidates.push_back(candidate_of(p));
    }
    sort_by_preference(candidates);
    std::vector<listed_endpoint> sorted;
    std::uint32_t group = 0;
    for (const candidate& c : candidates) {
      if (&c != candidates.data() && !same_group(c, *(&c - 1))) ++group;
      sorted.push_back({.where = {c.destination, port},
                        .group = group,
                        .expected_handshake = world_.paths[index_of(c.destination)].remembered,
                        .answered_lately = world_.paths[index_of(c.destination)].lately});
    }
    return sorted;
  }

  static candidate candidate_of(const path& p) {
    candidate c{.destination = p.where, .source = p.where, .has_source = p.routed};
    c.source.bytes[15] = c.source.bytes[3] = 200;
    c.service_priority = p.group;
    c.rtt = p.remembered;
    return c;
  }

  std::size_t index_of(const address& where) const {
    std::size_t i = 0;
    while (world_.paths[i].where != where) ++i;
    return i;
  }

  // ---- the race

  void connect() {
    began_ = now_;
    const std::vector<listed_endpoint> first = list();
    named_ = first[world_.named % first.size()].where;
    if (world_.program_deadline != duration(0)) {
      machine_.set_deadline(began_ + world_.program_deadline);
      push(began_ + world_.program_deadline, event::kind::deadline, 0);
    }
    for (std::uint32_t i = 0; i < world_.changes.size(); ++i) {
      push(began_ + world_.changes[i].at, event::kind::change, i);
    }
    push(began_ + late_answer_lifetime, event::kind::late_end, 0);
    if (has_reserve()) machine_.expect_last_resort();
    refresh();
    drain();
    while (!decided_ && out_.violation.empty()) {
      const time_point next = std::min(until_, events_.empty() ? never : events_.top().at);
      if (next == never) return fail("stuck: nothing will ever happen");
      if (next < now_) return fail("the race waits for the past");
      if (next > began_ + longest_run) return fail("no end");
      now_ = next;
      while (!decided_ && !events_.empty() && events_.top().at <= now_) {
        take_event();
        drain();
      }
      drain();
    }
    if (out_.violation.empty()) check_end();
  }

  void refresh() {
    const bool complete = resolution_->all_answered() || now_ >= began_ + late_answer_lifetime;
    const std::vector<listed_endpoint> sorted = list();
    expected_ = expected_plan(sorted, named_, world_.timing.preferred_family_count);
    complete_ = complete;
    list_changed_ = now_;
    machine_.set_plan(plan(sorted, named_, world_.timing.preferred_family_count), complete, now_);
  }

  void take_event() {
    const event e = events_.top();
    events_.pop();
    switch (e.what) {
      case event::kind::answer:
        take_answer(e.index);
        if (began_ != never && !machine_.finished() && now_ < began_ + late_answer_lifetime)
          refresh();
        return;
      case event::kind::change:
        removed_[world_.changes[e.index].path] = !world_.changes[e.index].present;
        return refresh();
      case event::kind::late_end: return refresh();
      case event::kind::deadline: decided_ = out_.left = true; return;
      case event::kind::attempt: return take_outcome(e.index, e.how);
    }
  }

  void take_outcome(std::uint32_t index, fate how) {
    const endpoint where{world_.paths[index].where, port};
    using kind = race_event::kind;
    note(how == fate::connected ? "< connected"
         : how == fate::failed  ? "< refused"
                                : "< troubled",
         where);
    if (how != fate::troubled) open_[index] = false;
    if (how == fate::connected) connected_.push_back(where);
    hurried_ = hurried_ || how != fate::connected;
    machine_.handle({.what = how == fate::connected ? kind::connected
                             : how == fate::failed  ? kind::failed
                                                    : kind::troubled,
                     .where = where},
                    now_);
  }

  void drain() {
    for (int turn = 0; turn < longest_drain && out_.violation.empty() && !out_.left; ++turn) {
      const race_action action = machine_.poll(now_);
      switch (action.what) {
        case race_action::kind::attempt: start(action.where); break;
        case race_action::kind::wait:
          until_ = action.until;
          if (!decided_ && until_ == never) check_nothing_to_start();
          return;
        case race_action::kind::last_resort: open_last_resort(); break;
        case race_action::kind::won: decide(true, action.where); break;
        case race_action::kind::lost: decide(false, {}); break;
      }
    }
    if (out_.violation.empty() && !out_.left) fail("the race never waits");
  }

  bool has_reserve() const {
    return std::any_of(world_.paths.begin(), world_.paths.end(),
                       [](const path& p) { return p.in_reserve; });
  }

  // V6ONLY-8
  void open_last_resort() {
    if (last_resort_open_ || !has_reserve()) return fail("a last resort that is none");
    if (!complete_ || first_unstarted() != nullptr)
      return fail("the last resort before the end of the list");
    if (in_flight() > 0 && now_ < last_start_ + world_.timing.last_resort_delay)
      return fail("the last resort too early");
    last_resort_open_ = true;
    refresh();
  }

  std::size_t in_flight() const {
    return static_cast<std::size_t>(std::count(open_.begin(), open_.end(), true));
  }

  void start(const endpoint& where) {
    note("> connect", where);
    check_start(where);
    const std::size_t index = index_of(where.address);
    const path& p = world_.paths[index];
    started_.push_back(where);
    last_path_ = &p;
    last_start_ = now_;
    hurried_ = false;
    if (!p.routed) {
      floor_ = time_point::min();
      hurried_ = true;
      note("< unreachable", where);
      machine_.handle({.what = race_event::kind::failed, .where = where, .reached_network = false},
                      now_);
      return;
    }
    ++out_.attempts;
    open_[index] = true;
    floor_ = now_ + options_.demanded_floor;
    for (const attempt_event& e : attempt(world_, p, now_ - began_)) {
      push(now_ + e.after, event::kind::attempt, static_cast<std::uint32_t>(index), e.what);
    }
  }

  void decide(bool won, const endpoint& winner) {
    note(won ? "> won" : "> lost", winner);
    if (decided_) return fail("a second decision");
    decided_ = true;
    out_.won = won;
    out_.decided_after = now_ - began_;
    out_.took = now_.time_since_epoch();
    if (won && std::find(connected_.begin(), connected_.end(), winner) == connected_.end())
      fail("a winner that has not connected");
    if (!won && std::find(open_.begin(), open_.end(), true) != open_.end())
      fail("lost while an attempt is under way");
    if (!won && (!complete_ || first_unstarted() != nullptr)) fail("lost with endpoints left");
    if (!won && has_reserve() && !last_resort_open_) fail("lost without the last resort");
  }

  // ---- what must hold

  const endpoint* first_unstarted() const {
    for (const endpoint& e : expected_) {
      if (std::find(started_.begin(), started_.end(), e) == started_.end()) return &e;
    }
    return nullptr;
  }

  void check_start(const endpoint& where) {
    if (decided_) return fail("an attempt after the end");
    if (std::find(started_.begin(), started_.end(), where) != started_.end())
      return fail("an endpoint attempted twice");
    const endpoint* next = first_unstarted();
    if (next == nullptr || *next != where) return fail("not the next of the plan");
    if (started_.empty()) return;
    if (now_ < floor_) return fail("two attempts within the floor");
    const time_point due = last_start_ + delay_after_last();
    if (hurried_ || now_ == due) return;
    if (now_ < due && !may_come_sooner()) return fail("sooner than the delay");
    if (now_ > due && now_ != list_changed_) return fail("later than the delay");
  }

  // ATTEMPT-4 and 5 in other words than racer/timing.h has.
  duration delay_after_last() const {
    const race_timing& t = world_.timing;
    if (t.profile == timing_profile::fast) {
      duration d = milliseconds(50);
      for (std::size_t i = 1; i < started_.size() && d < t.attempt_delay; ++i) d += d;
      return std::max(d < t.attempt_delay ? d : t.attempt_delay, duration(milliseconds(10)));
    }
    duration d = last_path_->remembered != duration(0) ? last_path_->remembered : t.attempt_delay;
    if (!last_path_->lately && d > t.attempt_delay) d = t.attempt_delay;
    if (d < t.minimum_delay) d = t.minimum_delay;
    if (d > t.maximum_delay) d = t.maximum_delay;
    return std::max(d, duration(milliseconds(10)));
  }

  bool may_come_sooner() const {
    if (world_.program_deadline != duration(0)) return true;
    return now_ >= last_start_ + world_.timing.minimum_delay;  // CHANGE-4
  }

  // The machine waits for events alone: nothing is left, or too much is under way.
  void check_nothing_to_start() {
    if (first_unstarted() != nullptr && machine_.in_flight() < max_attempts_in_flight)
      fail("no timer although an endpoint is left");
    if (first_unstarted() == nullptr && complete_ && has_reserve() && !last_resort_open_)
      fail("no timer although the last resort is left");
    if (machine_.in_flight() != in_flight()) fail("attempts under way are miscounted");
  }

  static bool is_sure(const path& p) {
    return p.routed && p.reply == answers_with::syn_ack && p.loss_percent == 0 &&
           p.dark_until == p.dark_from;
  }

  void check_end() {
    if (!out_.left) {
      for (const endpoint& e : started_) {
        const path& p = world_.paths[index_of(e.address)];
        if (is_sure(p) && !out_.won) return fail("lost although an endpoint answers");
      }
      check_promptness();
    }
    // Nothing after the end, whatever still comes in.
    while (!out_.left && !events_.empty()) {
      now_ = std::max(now_, events_.top().at);
      const event e = events_.top();
      events_.pop();
      if (e.what == event::kind::attempt) take_outcome(e.index, e.how);
      if (machine_.poll(now_).what != race_action::kind::wait)
        return fail("something after the end");
    }
  }

  // An endpoint that answers, listed all the time, is reached once all before it had their delay.
  void check_promptness() {
    if (!world_.changes.empty()) return;
    const duration longest = std::max(
        {world_.timing.maximum_delay, world_.timing.attempt_delay, world_.timing.minimum_delay});
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const path& p = world_.paths[index_of(expected_[i].address)];
      if (!is_sure(p)) continue;
      const duration bound = late_answer_lifetime + static_cast<int>(i) * longest + p.rtt;
      if (!out_.won || out_.decided_after > bound)
        fail("an endpoint that answers was not reached in time");
    }
  }

  void fail(const char* what) {
    if (!out_.violation.empty()) return;
    std::ostringstream text;
    text << what << ", at " << static_cast<double>(now_.time_since_epoch().count()) / 1e6 << " ms";
    out_.violation = text.str();
  }

  void note(const char* what, const endpoint& where) {
    std::uint64_t h =
        out_.fingerprint ^ static_cast<std::uint64_t>(now_.time_since_epoch().count());
    h = (h ^ static_cast<std::uint64_t>(what[2])) * 0x100000001b3u;
    for (const std::uint8_t byte : where.address.bytes) h = (h ^ byte) * 0x100000001b3u;
    out_.fingerprint = h;
    if (!options_.keep_trace) return;
    std::ostringstream line;
    line << "  " << static_cast<double>((now_ - began_).count()) / 1e6 << " " << what << " "
         << (what[2] == 'l' ? "" : happy::to_text(where.address).chars) << "\n";
    out_.trace += line.str();
  }

  void push(time_point at, event::kind what, std::uint32_t index, fate how = {}) {
    events_.push({at, ++last_event_, what, index, how});
  }

  const world& world_;
  options options_;
  outcome out_;
  std::unique_ptr<resolution> resolution_;
  race machine_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::uint64_t last_event_ = 0;
  time_point now_{};
  time_point first_positive_ = never;
  time_point began_ = never;
  time_point until_ = never;
  time_point list_changed_{};
  bool complete_ = false;
  bool last_resort_open_ = false;
  bool decided_ = false;
  endpoint named_;
  std::vector<endpoint> expected_;
  std::vector<endpoint> started_;
  std::vector<endpoint> connected_;
  std::vector<bool> open_;
  std::vector<bool> removed_;
  const path* last_path_ = nullptr;
  time_point last_start_{};
  time_point floor_ = time_point::min();
  bool hurried_ = false;  // a failure or trouble since the last start
};

}  // namespace

outcome run(const world& w, const options& o) { return simulation(w, o).go(); }

duration best_possible(const world& w) {
  duration best(-1);
  for (const path& p : w.paths) {
    if (p.in_reserve) continue;
    const query_fate& f = p.where.family == family::ipv6 ? w.aaaa : w.a;
    if (f.reply != dns_reply::positive || !p.routed) continue;
    for (const attempt_event& e : attempt(w, p, duration(0))) {
      const duration took = f.after + e.after;
      if (e.what == fate::connected && (best < duration(0) || took < best)) best = took;
    }
  }
  return best;
}

}  // namespace happy::sim
