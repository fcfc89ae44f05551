#include "tests/sim/lives.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <vector>

#include "racer/plan.h"
#include "racer/race.h"
#include "resolver/history.h"
#include "tests/sim/world.h"

namespace happy::sim {
namespace {

using std::chrono::seconds;

constexpr std::uint16_t port = 443;
constexpr duration retry = seconds(60);
constexpr duration rtt = milliseconds(20);
constexpr int clients = 4;
constexpr int names = 6;
constexpr int connections = 400;

// A client remembers by itself, or two share a history as two programs of one user do.
struct client {
  std::shared_ptr<history> memory;
  time_point next{};
};

// One network: which families get through, and since when IPv6 does without a break.
struct network {
  std::uint64_t id;
  bool ipv6 = true;
  time_point ipv6_since{};
};

struct connection {
  bool won = false;
  family by = family::ipv6;
  duration took{};
  std::vector<address> silent;  // started, and without an answer
};

address address_of(int name, family f) {
  if (f == family::ipv4) return make_ipv4(192, 0, 2, static_cast<std::uint8_t>(name + 1));
  address a{.family = family::ipv6};
  a.bytes = {0x20, 0x01, 0x0d, 0xb8};
  a.bytes[15] = static_cast<std::uint8_t>(name + 1);
  return a;
}

class lives {
 public:
  explicit lives(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < clients; ++i) {
      const bool shares = i > 0 && random_.chance(30);
      clients_.push_back({shares ? clients_.back().memory : std::make_shared<history>(retry)});
    }
  }

  std::string go() {
    for (int i = 0; i < connections && violation_.empty(); ++i) {
      client& c =
          *std::min_element(clients_.begin(), clients_.end(),
                            [](const client& a, const client& b) { return a.next < b.next; });
      now_ = std::max(now_, c.next);
      change_weather();
      connect_once(c, static_cast<int>(random_.below(names)));
      c.next = now_ + random_.between(1, 90'000);
    }
    return violation_;
  }

 private:
  void change_weather() {
    if (random_.chance(3)) here_ ^= 1;
    if (!random_.chance(4)) return;
    network& n = networks_[here_];
    n.ipv6 = !n.ipv6;
    if (n.ipv6) n.ipv6_since = now_;
  }

  void connect_once(client& c, int name) {
    const network& n = networks_[here_];
    const std::uint64_t hash = hash_of(std::to_string(name));
    std::vector<candidate> list;
    for (const family f : {family::ipv4, family::ipv6}) {
      candidate one{.destination = address_of(name, f), .has_source = true};
      one.source = one.destination;
      one.source.bytes[f == family::ipv4 ? 3 : 15] = 200;
      one.demoted = c.memory->is_demoted(n.id, one.destination, hash, now_);
      one.used = c.memory->was_used(n.id, one.destination, now_);
      list.push_back(one);
    }
    sort_by_preference(list);
    const connection made = race_for(list, n);
    check(list, made, n, *c.memory);
    if (made.won) remember(c, n, hash, address_of(name, made.by), made);
  }

  connection race_for(const std::vector<candidate>& list, const network& n) {
    std::vector<listed_endpoint> sorted;
    for (const candidate& one : list) sorted.push_back({.where = {one.destination, port}});
    race machine(race_timing{});
    machine.set_plan(plan(sorted, sorted.front().where, 1), true, now_);
    connection made;
    const time_point began = now_;
    time_point answer = never;
    endpoint answers;
    for (int turn = 0; turn < 20; ++turn) {
      const race_action next = machine.poll(now_);
      if (next.what == race_action::kind::won) {
        made.won = true;
        made.by = next.where.address.family;
        made.took = now_ - began;
        return made;
      }
      if (next.what == race_action::kind::attempt) {
        const family f = next.where.address.family;
        if (f == family::ipv4 || n.ipv6) {
          answer = now_ + rtt;
          answers = next.where;
        } else {
          made.silent.push_back(next.where.address);
        }
        continue;
      }
      now_ = std::min(next.until, answer);
      if (now_ == answer)
        machine.handle({.what = race_event::kind::connected, .where = answers}, now_);
    }
    return made;
  }

  // As racer/history_notes.cc does: a race was needed, or what had failed works again.
  void remember(client& c, const network& n, std::uint64_t hash, const address& winner,
                const connection& made) {
    for (const address& a : made.silent) c.memory->apply(n.id, {a, hash, false, true, now_});
    if (!made.silent.empty() || c.memory->would_clear(n.id, winner, hash))
      c.memory->apply(n.id, {winner, hash, true, true, now_});
  }

  // spec: SORT-4 SORT-5
  void check(const std::vector<candidate>& list, const connection& made, const network& n,
             const history& memory) {
    if (!made.won) return fail("no connection although IPv4 works");
    const bool healed = n.ipv6 && now_ - n.ipv6_since > longest_demotion * retry + seconds(1);
    if (healed && made.by != family::ipv6) return fail("IPv6 works, and is not used in time");
    if (!memory.knows(n.id) && list.front().destination.family != family::ipv6)
      return fail("what another network has shown counts here");
    if (!n.ipv6 && made.by == family::ipv6) return fail("IPv6 connects although it is broken");
    // Who knows of it waits for nothing: the first is tried first, the next after the delay.
    const bool at_once = n.ipv6 || list.front().destination.family == family::ipv4;
    if (made.took != (at_once ? rtt : race_timing{}.attempt_delay + rtt))
      fail("not as fast as the order of attempts allows");
  }

  void fail(const char* what) {
    if (!violation_.empty()) return;
    std::ostringstream text;
    text << what << ", at " << now_.time_since_epoch() / seconds(1) << " s";
    violation_ = text.str();
  }

  random_numbers random_;
  std::vector<client> clients_;
  network networks_[2] = {{.id = 1}, {.id = 2}};
  std::size_t here_ = 0;
  time_point now_{seconds(1000)};
  std::string violation_;
};

}  // namespace

std::string live(std::uint64_t seed) { return lives(seed).go(); }

}  // namespace happy::sim
