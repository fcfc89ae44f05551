#include "tests/sim/run.h"

#include <algorithm>
#include <queue>
#include <sstream>

#include "racer/plan.h"
#include "resolver/intent.h"
#include "tests/sim/lookup.h"
#include "tests/sim/network.h"
#include "tests/sim/referee.h"

namespace happy::sim {
namespace {

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

class simulation {
 public:
  simulation(const world& w, const options& o)
      : world_(w), options_(o), lookup_(w), machine_(w.timing), referee_(w, o.demanded_floor) {}

  outcome go() {
    look_up();
    if (out_.resolved && referee_.is_content()) connect();
    out_.violation = referee_.violation();
    return std::move(out_);
  }

 private:
  // ---- the lookup

  void look_up() {
    for (int turn = 0; turn < longest_drain; ++turn) {
      const resolution::action next = send_queries();
      if (next.what == resolution::action::kind::finished) return end_lookup(next.reason);
      const time_point until = std::min(next.until, events_.empty() ? never : events_.top().at);
      if (until == never || until < now_) return fail("the resolution waits for nothing");
      now_ = until;
      if (!events_.empty() && events_.top().at == now_) take_event();
    }
    fail("the resolution does not end");
  }

  // All that are due now; what the resolution wants then.
  resolution::action send_queries() {
    resolution::action next = lookup_.state().poll(now_);
    for (; next.what == resolution::action::kind::query; next = lookup_.state().poll(now_)) {
      referee_.queried(lookup_.state(), next.query, now_);
      const query_fate& f = lookup_.fate_of(next.query);
      if (f.reply == dns_reply::silent) continue;
      const auto query = static_cast<std::uint32_t>(next.query);
      push(now_ + f.after, event::kind::answer, query);
      if (f.repeated) push(now_ + 2 * f.after, event::kind::answer, query);
    }
    return next;
  }

  void end_lookup(move_on reason) {
    referee_.looked_up(lookup_.state(), reason, now_);
    out_.resolved = lookup_.state().any_positive() && !lookup_.list().empty();
    out_.draw = lookup_.draw();
  }

  // ---- the race

  void connect() {
    began_ = now_;
    const std::vector<listed_endpoint> first = lookup_.list();
    named_ = first[world_.named % first.size()].where;
    referee_.began(named_, now_);
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
    while (!decided_ && referee_.is_content()) {
      const time_point next =
          std::min({until_, events_.empty() ? never : events_.top().at, further_queries_at()});
      if (next == never) return fail("stuck: nothing will ever happen");
      if (next < now_) return fail("the race waits for the past");
      if (next > began_ + longest_run) return fail("no end");
      now_ = next;
      if (now_ >= further_queries_at()) send_queries();
      if (now_ >= further_queries_at()) return fail("the resolution waits for the past");
      while (!decided_ && !events_.empty() && events_.top().at <= now_) {
        take_event();
        drain();
      }
      drain();
    }
    if (referee_.is_content()) finish();
  }

  // What is left of the lookup asks until its late answers are of no use any more.
  time_point further_queries_at() const {
    const time_point at = lookup_.state().asks_more_at();
    return at < began_ + late_answer_lifetime ? at : never;
  }

  void refresh() {
    const bool complete = lookup_.state().all_answered() || now_ >= began_ + late_answer_lifetime;
    const std::vector<listed_endpoint> sorted = lookup_.list();
    referee_.listed(sorted, lookup_.state(), complete, now_);
    machine_.set_plan(plan(sorted, named_, world_.timing.preferred_family_count), complete, now_);
  }

  void take_event() {
    const event e = events_.top();
    events_.pop();
    switch (e.what) {
      case event::kind::answer:
        if (lookup_.take_answer(e.index, now_)) referee_.has_address(now_);
        if (began_ == never || machine_.finished() || now_ >= began_ + late_answer_lifetime) return;
        send_queries();  // the answer may be followed by further ones
        return refresh();
      case event::kind::change:
        lookup_.set_listed(world_.changes[e.index].path, world_.changes[e.index].present);
        return refresh();
      case event::kind::late_end: return refresh();
      case event::kind::deadline: decided_ = out_.left = true; return;
      case event::kind::attempt: return take_outcome(e.index, e.how);
    }
  }

  void take_outcome(std::uint32_t index, fate how) {
    const endpoint where = endpoint_of(world_, world_.paths[index]);
    using kind = race_event::kind;
    note(how == fate::connected ? "< connected"
         : how == fate::failed  ? "< refused"
                                : "< troubled",
         where);
    referee_.heard(index, how);
    machine_.handle({.what = how == fate::connected ? kind::connected
                             : how == fate::failed  ? kind::failed
                                                    : kind::troubled,
                     .where = where},
                    now_);
  }

  void drain() {
    for (int turn = 0; turn < longest_drain && referee_.is_content() && !out_.left; ++turn) {
      const endpoint* due = machine_.due(now_);
      const endpoint expected = due != nullptr ? *due : endpoint{};
      const race_action action = machine_.poll(now_);
      if (action.what == race_action::kind::attempt ? expected != action.where : due != nullptr)
        fail("something else is due than what is done");
      switch (action.what) {
        case race_action::kind::attempt: start(action.where); break;
        case race_action::kind::wait:
          until_ = action.until;
          if (!decided_ && until_ == never) referee_.waits_for_events(machine_, now_);
          return;
        case race_action::kind::last_resort:
          referee_.asked_last_resort(now_);
          lookup_.open_last_resort();
          refresh();
          break;
        case race_action::kind::won: decide(true, action.where); break;
        case race_action::kind::lost: decide(false, {}); break;
      }
    }
    if (referee_.is_content() && !out_.left) fail("the race never waits");
  }

  bool has_reserve() const {
    return std::any_of(world_.paths.begin(), world_.paths.end(),
                       [](const path& p) { return p.in_reserve; });
  }

  void start(const endpoint& where) {
    note("> connect", where);
    referee_.started(where, now_);
    std::size_t index = 0;
    while (world_.paths[index].where != where.address) ++index;
    const path& p = world_.paths[index];
    if (!p.routed) {
      referee_.unreachable();
      note("< unreachable", where);
      machine_.handle({.what = race_event::kind::failed, .where = where, .reached_network = false},
                      now_);
      return;
    }
    ++out_.attempts;
    for (const attempt_event& e : attempt(world_, p, now_ - began_)) {
      push(now_ + e.after, event::kind::attempt, static_cast<std::uint32_t>(index), e.what);
    }
  }

  void decide(bool won, const endpoint& winner) {
    note(won ? "> won" : "> lost", winner);
    referee_.decided(won, winner, now_);
    decided_ = true;
    out_.won = won;
    out_.decided_after = now_ - began_;
    out_.took = now_.time_since_epoch();
  }

  void finish() {
    referee_.ended(out_.won, out_.left, now_);
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

  void fail(const char* what) { referee_.fail(what, now_); }

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
  name_lookup lookup_;
  race machine_;
  referee referee_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::uint64_t last_event_ = 0;
  time_point now_{};
  time_point began_ = never;
  time_point until_ = never;
  bool decided_ = false;
  endpoint named_;
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
