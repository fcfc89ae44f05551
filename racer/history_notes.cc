#include "racer/history_notes.h"

#include <algorithm>
#include <cerrno>

#include "resolver/address_scope.h"
#include "resolver/clock.h"
#include "resolver/remembered.h"

namespace happy {
namespace {

// 0 where several lookups share the address.
std::uint64_t name_of(core& c, const pending_race& r) {
  const intent* meant = c.intents.by_id(r.known.id);
  return meant == nullptr || meant->name.empty() ? 0 : hash_of(meant->name);
}

// Nothing is learnt of this host itself, nor of its link.
bool is_worth_noting(const address& a) { return privacy_of(a) > privacy::link_local; }

bool has_source(const pending_race& r, const address& a) {
  return std::any_of(r.known.candidates.begin(), r.known.candidates.end(),
                     [&](const candidate& k) { return k.destination == a && k.has_source; });
}

void note(core& c, const history_note& n) {
  if (is_worth_noting(n.where)) c.has_notes = c.notes.push_back(n) || c.has_notes;
}

// A port that is closed says that the way there is open.
int error_of(const pending_race& r, const endpoint& where) {
  const auto f = std::find_if(r.failures.begin(), r.failures.end(),
                              [&](const failure& x) { return x.where == where; });
  return f == r.failures.end() ? 0 : f->error;
}

// The program's own attempt, and those that ended with an error. Those beside it that are merely silent began
// later: of them it is not known.
bool note_failures(core& c, const pending_race& r, std::uint64_t name, const address& winner,
                   time_point now) {
  bool any = false;
  bool spoken[2] = {};
  const auto note_failure = [&](const endpoint& where) {
    const address a = unmapped(where.address);
    if (a == winner || error_of(r, where) == ECONNREFUSED || !has_source(r, a)) return;
    bool& of_family = spoken[a.family == family::ipv4 ? 0 : 1];
    note(c, {a, name, false, !of_family && a.family != winner.family, now});
    of_family = any = true;
  };
  note_failure(r.named);
  for (const failure& f : r.failures) {
    if (f.where != r.named) note_failure(f.where);
  }
  return any;
}

}  // namespace

void note_hidden_win(core& c, const pending_race& r, time_point now) {
  if (!history_is_kept() || r.swap) return;
  const std::uint64_t name = name_of(c, r);
  const address winner = unmapped(r.winner.address);
  if (note_failures(c, r, name, winner, now)) note(c, {winner, name, true, true, now});
}

void note_own_success(core& c, const pending_race& r, const endpoint& where, time_point now) {
  if (!history_is_kept() || r.swap) return;
  const std::uint64_t name = name_of(c, r);
  const address winner = unmapped(where.address);
  // A program that races by itself: the socket of the address that it named first is still silent.
  const bool overtaken = where != r.named && now - r.began >= r.delay;
  const bool any = overtaken && note_failures(c, r, name, winner, now);
  if (any || r.active || success_is_news(winner, name)) note(c, {winner, name, true, true, now});
}

void save_history(core& c) {
  if (!c.has_notes.load(std::memory_order_relaxed)) return;
  bounded_vector<history_note, max_history_notes> taken;
  {
    const patient_guard guard(c, patience_to_begin);
    if (!guard) return;
    std::swap(taken, c.notes);
    c.has_notes = false;
  }
  remember({taken.begin(), taken.size()}, clock_now());
}

}  // namespace happy
