#include "racer/lookup_call.h"

#include <algorithm>

#include "racer/caller.h"
#include "racer/hinted.h"
#include "racer/synthesis.h"
#include "resolver/clock.h"
#include "resolver/dns_reply.h"
#include "resolver/lookup_intent.h"
#include "resolver/text_scan.h"
#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

static_assert(max_lookup_fds == HAPPY_MAX_LOOKUP_FDS);

happy_lookup_step done(happy_lookup& call, int code, addrinfo* list) {
  call.code = code;
  call.list = list;
  return HAPPY_LOOKUP_DONE;
}

happy_lookup_step give_bridge(core& c, happy_lookup& call, resolved&& out) {
  {
    core_guard guard(c);
    if (c.bridges.add(call.question.node, std::move(out.meant.candidates))) {
      __atomic_store_n(&c.host.pending->bridged, 1, __ATOMIC_RELEASE);
      return done(call, out.code, out.list);
    }
  }
  ::freeaddrinfo(out.list);
  return HAPPY_LOOKUP_DECLINED;
}

happy_lookup_step give(core& c, happy_lookup& call, resolved&& out) {
  if (out.bridged) return give_bridge(c, call, std::move(out));
  if (out.host) {
    call.host->resolver_error = out.host->resolver_error;
    call.host->left_error = out.host->left_error;
    const bool found = out.host->resolver_error == 0;
    if (found && !fill(*call.host, *out.host)) return HAPPY_LOOKUP_DECLINED;
    if (!found) return done(call, out.code, nullptr);
  }
  call.left_error = out.left_error.value_or(-1);
  const happy_lookup_step step = done(call, out.code, out.list);
  if (out.code != 0) return step;
  try {
    keep(c, std::move(out.meant), std::move(out.open), call.single_threaded == 0);
  } catch (...) {  // the program has its answer; it will not race
  }
  return step;
}

happy_lookup_step wait(happy_lookup& call, lookup& asked, time_point now) {
  const auto fds = asked.poll_set();
  std::copy(fds.begin(), fds.end(), call.fds);
  call.fd_count = fds.size();
  call.timeout_ms = wait_ms(asked.wait_until(now), now);
  return HAPPY_LOOKUP_POLL;
}

// Lookups of this thread that were left by siglongjmp().
void drop_abandoned(core& c, const happy_lookup& call, pid_t thread) {
  std::erase_if(c.running_lookups, [&](const running_lookup& r) {
    return r.thread == thread && !is_below(&call, r.frame);
  });
}

std::vector<running_lookup>::iterator find(core& c, std::uint64_t id) {
  return std::find_if(c.running_lookups.begin(), c.running_lookups.end(),
                      [&](const running_lookup& r) { return r.id == id; });
}

name_resolution* work_of(core& c, std::uint64_t id) {
  core_guard guard(c);
  const auto r = find(c, id);
  return r == c.running_lookups.end() ? nullptr : r->work.get();
}

std::uint64_t next_id(core& c) {
  core_guard guard(c);
  return ++c.last_id;
}

happy_lookup_step turn(core& c, happy_lookup& call, name_resolution& work) {
  const time_point now = clock_now();
  auto outcome = work.turn(now);
  if (!outcome) return wait(call, work.asked(), now);
  lookup_left(c, call);
  if (const auto* unfinished = std::get_if<declined>(&*outcome)) {
    call.code = unfinished->nameservers_silent ? EAI_AGAIN : 0;
    return HAPPY_LOOKUP_DECLINED;
  }
  return give(c, call, std::move(std::get<resolved>(*outcome)));
}

}  // namespace

void keep(core& c, intent&& meant, std::unique_ptr<lookup> open, bool worker_may_start) {
  if (!meant.unconfirmed) publish_hints(c, meant);
  core_guard guard(c);
  if (!meant.follows_srv) c.intents.forget_failures(meant.thread);
  const bool wants_worker = open != nullptr && worker_may_start;
  if (open != nullptr) {
    bound_open_lookups(c);
    c.open_lookups.push_back(std::move(open));
  }
  meant.reserve_failures();
  mark_addresses(c, meant);
  c.intents.add(std::move(meant));
  service_lookups(c, clock_now());
  if (wants_worker) c.hidden_worker.engage(c, {});
}

// Whether this host and its user want it.
bool may_bridge(const core& c, const ipv4_outlook& outlook) {
  const auto wanted = static_cast<bridging>(c.host.settings->bridge);
  return wanted == bridging::everywhere || (wanted == bridging::ipv6_only && outlook.ipv6_only);
}

namespace {

// 0: no port number.
std::uint16_t port_in(const char* service) {
  std::uint16_t port = 0;
  return service != nullptr && read_number(service, port) ? port : std::uint16_t{0};
}

// A lookup of a target by a program that has the SRV answer: its neighbours join the race.
void follow_srv(core& c, const happy_question& question, resolve_options& options) {
  if (options.complete) return;
  auto random = static_cast<std::uint32_t>(clock_now().time_since_epoch().count());
  srv_companions found =
      c.targets.follow(question.node, random, clock_now(), port_in(question.service));
  options.companions = std::move(found.records);
  options.companion_port = found.port;
}

// At the port of its SRV record a target speaks that service: records of another that has the same port by default
// (https at 443, where XMPP is often, too) are not for it.
void forget_other_services(core& c, const happy_question& question, resolve_options& options) {
  const std::uint16_t named = port_in(question.service);
  const std::uint16_t port = named != 0 ? named : options.usual_port;
  const bool by_port = question.service == nullptr || named != 0;
  if (by_port && c.targets.is_target(question.node, clock_now(), port)) options.services = {};
}

}  // namespace

begun_lookup begin_lookup(core& c, const happy_question& question, bool complete,
                          std::uint16_t port, bool bridge, bool as_host) {
  std::uint64_t id = 0;
  std::shared_ptr<const system_snapshot> files;
  resolve_options options{.v2 = c.timing.profile == timing_profile::v2,
                          .resolution_delay = milliseconds(c.host.settings->resolution_delay_ms),
                          .services = c.services,
                          .keep_hints = c.host.settings->keep_hints != 0,
                          .complete = complete || bridge,
                          .as_host = as_host};
  {
    core_guard guard(c);
    id = ++c.last_id;
    if (c.host.names_are_others != 0) return {id, declined{}};
    files = options.files = c.files.current();
    const ipv4_outlook outlook = expect_nat64(c, clock_now());
    options.ipv6_only = outlook.ipv6_only;
    options.nat64 = outlook.prefixes;
    options.nat64_sought = outlook.ipv6_only && c.translator.query() != nullptr;
    if (bridge && !may_bridge(c, outlook)) return {id, declined{}};
    if (bridge) options.bridge = c.bridges.address_for(question.node);
    // A target is a host: it has no SRV records of its own.
    if (!c.targets.is_target(question.node, clock_now())) options.srv = c.host.settings->srv;
    follow_srv(c, question, options);
    options.usual_port = port != 0 ? port : c.intents.seen_port(question.node);
    forget_other_services(c, question, options);
  }
  return {id, name_resolution::begin(id, question, *files, options, clock_now())};
}

happy_lookup_step lookup_begin(core& c, happy_lookup& call) {
  if (call.host != nullptr && !has_room(*call.host)) return HAPPY_LOOKUP_DECLINED;
  const pid_t thread = raw_gettid();
  begun_lookup begun =
      begin_lookup(c, call.question, call.complete != 0, 0, call.bridge != 0, call.host != nullptr);
  call.id = begun.id;
  if (std::holds_alternative<declined>(begun.outcome)) return HAPPY_LOOKUP_DECLINED;
  if (auto* out = std::get_if<resolved>(&begun.outcome)) return done(call, out->code, out->list);

  auto& work = std::get<std::unique_ptr<name_resolution>>(begun.outcome);
  name_resolution& running = *work;
  {
    core_guard guard(c);
    drop_abandoned(c, call, thread);
    c.running_lookups.push_back({call.id, thread, &call, std::move(work)});
  }
  return turn(c, call, running);
}

happy_lookup_step lookup_continue(core& c, happy_lookup& call) {
  name_resolution* work = work_of(c, call.id);
  return work == nullptr ? HAPPY_LOOKUP_DECLINED : turn(c, call, *work);
}

void lookup_left(core& c, const happy_lookup& call) {
  std::unique_ptr<name_resolution> gone;  // closes its sockets after the lock is released
  core_guard guard(c);
  const auto r = find(c, call.id);
  if (r == c.running_lookups.end()) return;
  gone = std::move(r->work);
  c.running_lookups.erase(r);
}

void remember(core& c, const happy_question& question, const addrinfo* list) {
  intent meant = intent_of(next_id(c), question, list, clock_now());
  if (!meant.candidates.empty()) keep(c, std::move(meant), nullptr, false);
}

void notice_srv(core& c, std::span<const std::uint8_t> reply) {
  answer said = read_reply(record_type::srv, reply);
  core_guard guard(c);
  const std::uint64_t id = ++c.last_id;
  trace_services(id, said.services);
  c.targets.note(std::move(said.services), clock_now());
}

void remember_host(core& c, const char* name, const hostent& answer) {
  intent meant = intent_of(next_id(c), name, answer, clock_now());
  if (!meant.candidates.empty()) keep(c, std::move(meant), nullptr, false);
}

}  // namespace happy
