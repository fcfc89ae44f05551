#include "racer/progress.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "racer/blocking_connect.h"
#include "racer/caller.h"
#include "racer/connect_call.h"
#include "racer/handover.h"
#include "racer/history_notes.h"
#include "racer/nonblocking_connect.h"
#include "racer/noted_registrations.h"
#include "racer/race_trace.h"
#include "racer/synthesis.h"
#include "racer/veiled_connect.h"
#include "resolver/address_scope.h"
#include "resolver/answer_cache.h"
#include "resolver/remembered.h"
#include "resolver/source_memory.h"

namespace happy {
namespace {

// Contract: never into a more private scope than the address that the program named.
bool is_allowed(const candidate& c, const pending_race& r, privacy named) {
  if (r.original.bound && c.destination.family != r.original.local.family) return false;
  return privacy_of(c.destination, is_own(c)) >= named;
}

privacy named_privacy(const pending_race& r) {
  for (const candidate& c : r.known.candidates) {
    if (c.destination == unmapped(r.named.address)) return privacy_of(c.destination, is_own(c));
  }
  return privacy_of(r.named.address);
}

void close_attempts(pending_race& r, const endpoint* winner) {
  for (hidden_attempt& a : r.attempts) {
    if (winner == nullptr || a.where != *winner) trace_race_endpoint("loser", r, a.where);
  }
  r.attempts.clear();
}

// What failed for a reason of our own (no descriptor, no memory) says nothing of the endpoint: the program
// will try it itself.
void record_failure(pending_race& r, const endpoint& where, int error) {
  if (is_endpoint_failure(error)) r.failures.push_back({where, error});
  trace_failure(r, where, error);
}

void fail_hidden(pending_race& r, const endpoint& where, int error, bool reached_network,
                 time_point now) {
  record_failure(r, where, error);
  r.machine.handle(
      {.what = race_event::kind::failed, .where = where, .reached_network = reached_network}, now);
  // The address that the program named has failed: its own attempt, which goes nowhere, must not wait on.
  if (r.swap) r.machine.handle({.what = race_event::kind::failed, .where = r.named}, now);
}

// The attempt that stood for the program's own has failed. Its error can be read once, by the program.
void keep_for_program(pending_race& r, hidden_attempt& a, time_point now) {
  const endpoint where = a.where;
  r.winner = where;
  r.winner_socket = std::move(a.socket);
  r.winner_options = a.options;
  r.attempts.erase(static_cast<std::size_t>(&a - r.attempts.begin()));
  fail_hidden(r, where, 0, true, now);
}

void start_hidden(core& c, pending_race& r, const race_action& action, time_point now) {
  const endpoint& where = action.where;
  trace_attempt(r, action);
  c.starts.note_start(where.address, now);
  const std::uint32_t changes = __atomic_load_n(&c.host.pending->option_changes, __ATOMIC_SEQ_CST);
  started_attempt started = start_attempt(r.original, where);
  if (started.error == 0 || started.error == EINPROGRESS) {
    r.attempts.push_back(
        {where, std::move(started.socket), {started.options, r.original_dup.cookie(), changes}});
    if (started.error == 0)
      r.machine.handle({.what = race_event::kind::connected, .where = where}, now);
    return;
  }
  fail_hidden(r, where, started.error, started.reached_network, now);
}

// False: the winner cannot be made like the program's socket.
bool win(pending_race& r, const endpoint& where, time_point now) {
  const auto a = std::find_if(r.attempts.begin(), r.attempts.end(),
                              [&](const hidden_attempt& x) { return x.where == where; });
  if (a == r.attempts.end()) return true;  // the program's own attempt: its caller knows
  r.winner = where;
  r.winner_socket = std::move(a->socket);
  r.winner_options = a->options;
  if (!copy_file_state(r.original.fd, r.original.socket_family, r.winner_socket.get(),
                       where.address.family)) {
    return false;
  }
  r.won = true;
  r.won_at = now;
  trace_race_endpoint("winner", r, where);
  close_attempts(r, &where);
  return true;
}

void add_once(endpoint_list& list, const listed_endpoint& e) {
  const bool there = std::any_of(list.begin(), list.end(),
                                 [&](const listed_endpoint& x) { return x.where == e.where; });
  if (!there) list.push_back(e);
}

// Those that endpoints of this race can lie behind: of no use where every IPv4 address has a route.
prefix_list prefixes_for(core& c, const pending_race& r, time_point now) {
  const auto has_no_way = [](const candidate& k) {
    return k.translation_length != 0 || (k.destination.family == family::ipv4 && !k.has_source);
  };
  if (std::none_of(r.known.candidates.begin(), r.known.candidates.end(), has_no_way)) return {};
  c.translator.turn(now);  // the answer to a query for a prefix may have come
  return c.translator.prefixes(now);
}

bool is_translated(const candidate& known, const prefix_list& prefixes) {
  if (known.translation_length != 0) return true;
  return known.destination.family == family::ipv6 &&
         std::any_of(prefixes.begin(), prefixes.end(), [&](const nat64_prefix& p) {
           return embedded_ipv4(p, known.destination).has_value();
         });
}

}  // namespace

void refresh_plan(core& c, pending_race& r, time_point now) {
  if (const intent* meant = c.intents.by_id(r.lookup)) {
    r.known.candidates.clear();
    for (const candidate& known : meant->candidates_at(r.port)) r.known.candidates.push_back(known);
  }
  const privacy least = named_privacy(r);
  c.sorted.clear();
  const candidate* before = nullptr;
  std::uint32_t group = 0;
  // A program that names IPv4 addresses to an IPv6 socket (a JVM), or would, goes on seeing them so.
  const bool as_mapped = r.known.as_mapped || is_v4_mapped(r.named.address);
  const prefix_list prefixes = prefixes_for(c, r, now);
  for (const candidate& known : r.known.candidates) {
    if (!is_allowed(known, r, least)) continue;
    if (before != nullptr && !same_group(*before, known)) ++group;
    before = &known;
    const duration expected = expected_handshake(known.rtt, known.rtt_variance);
    const std::uint16_t port = known.port != 0 ? known.port : r.port;
    // NAT64-2: decided for each destination, by whether the kernel has a route to it.
    const bool no_way = known.destination.family == family::ipv4 && !known.has_source;
    if (no_way) {
      for (const address& a : synthesised(prefixes, known.destination))
        add_once(
            c.sorted,
            {.where = {a, port}, .group = group, .in_turn = known.in_turn, .translated = true});
    }
    add_once(c.sorted, {.where = {as_mapped ? mapped(known.destination) : known.destination, port},
                        .group = group,
                        .in_turn = known.in_turn,
                        .expected_handshake = expected,
                        .answered_lately = known.rtt_age <= recent_history,
                        .translated = is_translated(known, prefixes)});
  }
  r.machine.set_plan(
      plan({c.sorted.begin(), c.sorted.size()}, r.named, c.timing.preferred_family_count),
      r.deaf || !lookup_is_open(c, r.lookup, now), now);
  if (r.last_resort && !r.deaf) r.machine.expect_last_resort();
}

bool adopt_original(pending_race& r) {
  const guarded_socket& dup = r.original_dup;
  const bool held = dup.valid() && dup.cookie() == r.cookie && dup.is_ours();
  if (held && socket_cookie(r.fd) != r.cookie) return false;
  if (!held) {
    result<guarded_socket> made =
        guarded_socket::adopt(real->fcntl(r.fd, F_DUPFD_CLOEXEC, first_hidden_fd));
    if (!made.ok() || made.value().cookie() != r.cookie) return false;
    r.original_dup = std::move(made.value());
  }
  r.original.fd = dup.get();
  const bool judged = r.cookie == r.veiled;  // the filter is ours
  return judged || !has_uncopyable_options(dup.get(), r.original.socket_family);
}

void advance_to_named(core& c, pending_race& r, time_point now) {
  refresh_plan(c, r, now);
  trace_attempt(r, r.machine.poll(now));
}

time_point advance(core& c, pending_race& r, time_point now) {
  for (;;) {
    if (const endpoint* due = r.machine.due(now)) {
      r.rests_until = c.starts.next_start(due->address, now);
      if (r.rests_until > now) return r.rests_until;
    }
    const race_action next = r.machine.poll(now);
    switch (next.what) {
      case race_action::kind::attempt: start_hidden(c, r, next, now); break;
      case race_action::kind::wait: return next.until;
      case race_action::kind::last_resort:
        ask_last_resort(c, r, now);
        refresh_plan(c, r, now);
        break;
      case race_action::kind::won:
        if (!win(r, next.where, now)) {
          abandon(c, r, "the winner cannot be made like the socket");
        } else if (r.won) {
          note_hidden_win(c, r, now);
        }
        return never;
      case race_action::kind::lost:
        r.lost = true;
        keep_failures(c, r, now);
        trace_lost(r);
        return never;
    }
  }
}

void report_attempt(pending_race& r, int fd, time_point now) {
  const auto a = std::find_if(r.attempts.begin(), r.attempts.end(),
                              [&](const hidden_attempt& x) { return x.socket.get() == fd; });
  if (a == r.attempts.end()) return;
  const endpoint where = a->where;
  if (stands_for_own(r, where) && has_ended(a->socket)) return keep_for_program(r, *a, now);
  const attempt_report report = examine_attempt(a->socket);
  switch (report.state) {
    case attempt_state::pending: return;
    case attempt_state::troubled:
      trace_trouble(r, where, report.error);
      r.machine.handle({.what = race_event::kind::troubled, .where = where}, now);
      return;
    case attempt_state::connected:
      r.machine.handle({.what = race_event::kind::connected, .where = where}, now);
      return;
    case attempt_state::failed:
      r.attempts.erase(static_cast<std::size_t>(a - r.attempts.begin()));
      fail_hidden(r, where, report.error, true, now);
      return;
  }
}

void fail_named(pending_race& r, int error, time_point now) {
  record_failure(r, r.named, error);
  // An error that came sooner than any packet could return was the host's own.
  constexpr duration shortest_path = std::chrono::microseconds(50);
  r.machine.handle({.what = race_event::kind::failed,
                    .where = r.named,
                    .reached_network = error == ECONNREFUSED || now - r.began > shortest_path},
                   now);
}

void connect_named(core& c, pending_race& r, time_point now) {
  r.machine.handle({.what = race_event::kind::connected, .where = r.named}, now);
  trace_race_endpoint("winner", r, r.named);
  note_own_success(c, r, r.named, now);
  close_attempts(r, nullptr);
  finish_lookup(c, r.lookup);
}

void keep_failures(core& c, pending_race& r, time_point now) {
  intent* meant = c.intents.by_id(r.known.id);
  if (meant == nullptr || r.swap) return;
  drop_known_answers(meant->name);  // who tries again gets what the DNS says then
  c.intents.record_failures(*meant, {r.failures.begin(), r.failures.size()}, r.named, r.thread,
                            now);
}

time_point insist(pending_race& r, time_point now) {
  constexpr duration look_again = milliseconds(10);
  if (!(r.won || r.swap) || !r.original_dup.is_ours()) return never;
  if (is_connecting(r.original_dup.get())) real->shutdown(r.original_dup.get(), SHUT_RDWR);
  return now + look_again;
}

delivery publish(pending_race& r) {
  if (r.won) {
    if (socket_cookie(r.fd) != r.cookie) return delivery::impossible;
    if (!caller_is_waiting(r.thread, r.fd, &r.word)) return delivery::not_now;
    // Other threads may wait for the socket meanwhile (or read from it as soon as it connects): they
    // must not see the old one die first. Where there are none the caller does it itself.
    r.handed_over = !r.single_threaded && hand_over(r);
    if (!r.handed_over && (!r.single_threaded || !can_hand_over(r))) return delivery::impossible;
  }
  r.published = true;
  r.word.store(r.open_word() + 1, std::memory_order_release);
  wake_caller(r);
  // A caller inside connect() comes back from it at once.
  if ((r.won || r.swap) && r.original_dup.is_ours())
    real->shutdown(r.original_dup.get(), SHUT_RDWR);
  return delivery::told;
}

void end_race(core& c, pending_race& r) {
  const bool active = !r.driven && r.active;
  const bool watched = !r.driven && r.armed;
  c.races.release(r);
  count_pending(c);
  if (active)
    c.hidden_worker.wake();
  else if (watched)
    c.hidden_worker.wake_to_end();
}

happy_step settle(core& c, pending_race& r, happy_connect& call, int result, int error) {
  end_race(c, r);
  return give(call, result, error);
}

void quiesce(core& c, bool network_changes) {
  {
    core_guard guard(c);
    c.races.for_each_used([&](pending_race& r) {
      const bool goes_on = (r.active || r.armed || r.clocked) && !r.orphaned;
      if (goes_on) abandon(c, r, "the process changes its own rules");
    });
    count_pending(c);
    for (const auto& l : c.open_lookups) l->drop();
    if (network_changes) {
      c.intents.clear();
      c.translator.forget();
      forget_known_answers();
      forget_sources();
    }
    c.notes.clear();
    forget_network();
    c.translator.close_sockets();
    c.proc_is_known = false;
    doubt_proc(*c.host.pending);
    c.hidden_worker.dismiss();
  }
  c.hidden_worker.wait_until_gone();
}

void begin_again(core& c, pending_race& r, time_point now) {
  close_attempts(r, nullptr);
  c.races.give_back(r);
  r.original_dup.reset();
  r.winner_socket.reset();
  r.active = r.won = r.lost = r.handed_over = false;
  r.failures.clear();
  r.lookup = 0;
  r.on_their_own = true;
  r.named = r.sockets[0].where;
  r.began = now;
  r.active_from = now + r.delay;
  std::construct_at(&r.machine, c.timing);
  for (const program_socket& s : r.sockets) {
    r.machine.note_started(s.where, now);
    trace_race_endpoint("goes on", r, s.where);
  }
}

void abandon(core& c, pending_race& r, const char* why) {
  if (r.active || r.armed) trace_abandon(r, why);
  close_attempts(r, nullptr);
  lift_veil(r);
  restore_send_timeout(r);
  end_race(c, r);
}

void leave_alone(core& c, pending_race& r) {
  constexpr char why[] = "the program closed the fd";
  if (r.orphaned) return;
  if (!r.driven || !r.original_dup.is_ours()) return abandon(c, r, why);
  trace_abandon(r, why);
  close_attempts(r, nullptr);
  r.orphaned = true;
}

}  // namespace happy
