#include "resolver/resolve.h"

#include <algorithm>
#include <cstring>

#include "resolver/connectivity.h"
#include "resolver/endpoints.h"
#include "resolver/gai_conf.h"
#include "resolver/host_name.h"
#include "resolver/remembered.h"
#include "resolver/source_address.h"
#include "resolver/thread_resolver.h"
#include "resolver/trace.h"
#include "shim/base/raw_syscall.h"
#include "shim/base/real_functions.h"

namespace happy {
namespace {

constexpr std::uint16_t https_port = 443;

// The program's hints, or what glibc puts in their place.
struct wish {
  int flags = AI_V4MAPPED | AI_ADDRCONFIG;
  int af = AF_UNSPEC;
  int socktype = 0;
};

wish read_hints(const addrinfo* hints) {
  if (hints == nullptr) return {};
  return {hints->ai_flags, hints->ai_family, hints->ai_socktype};
}

// Flags whose effect on the answer is glibc's business.
bool flags_are_plain(const wish& w, const resolve_options& options) {
  constexpr int idn_out = AI_CANONNAME | AI_CANONIDN;  // libidn2 would have its say
  if ((w.flags & idn_out) == idn_out) return false;
  if ((w.flags & AI_ADDRCONFIG) != 0 && w.af != AF_UNSPEC) {
    const configured_families configured = families_configured();
    const bool ipv4 = configured.ipv4 || !options.nat64.empty();
    if (!(w.af == AF_INET ? ipv4 : configured.ipv6)) return false;
  }
  return w.af != AF_INET6 || (w.flags & AI_V4MAPPED) == 0;
}

bool is_irregular(const resolution& state) {
  for (const record_type type : {record_type::aaaa, record_type::a}) {
    const answer* a = state.answered(type);
    if (a != nullptr && a->irregular) return true;
  }
  return false;
}

void trace_lookup(std::uint64_t id, const happy_question& question) {
  if (!trace_on()) return;
  json_line line = trace_line("lookup", id);
  line.text("name", question.node)
      .text("service", question.service != nullptr ? question.service : "");
  emit(line);
}

void trace_decline(std::uint64_t id, const char* name, const char* reason) {
  if (!trace_on()) return;
  json_line line = trace_line("decline", id);
  line.text("name", name).text("reason", reason);
  emit(line);
}

void trace_move_on(std::uint64_t id, move_on reason, bool open) {
  if (!trace_on()) return;
  json_line line = trace_line("move_on", id);
  line.text("reason", to_text(reason)).number("open_queries", open ? 1 : 0);
  emit(line);
}

void trace_order(std::uint64_t id, const char* event, const std::vector<candidate>& list) {
  if (!trace_on()) return;
  json_line line = trace_line(event, id);
  line.list("addresses", list.size(), [&](std::size_t i) { return list[i].destination; });
  emit(line);
}

bool contains(const std::vector<candidate>& list, const address& a) {
  return std::any_of(list.begin(), list.end(),
                     [&](const candidate& c) { return c.destination == a; });
}

// NAT64-1
std::uint8_t translation_length(const prefix_list& prefixes, const address& a) {
  for (const nat64_prefix& p : prefixes) {
    if (a.family == family::ipv6 && embedded_ipv4(p, a)) return p.length;
  }
  return 0;
}

// How much of the history an order may be made with.
using with_history = std::optional<recall_from>;

void recall_history(const intent& meant, std::vector<candidate>& list, with_history history) {
  if (!history) return;
  const recalled found = recall(list, meant.name, *history, meant.made);
  if (!trace_on() || found.demoted + found.used + found.paths == 0) return;
  json_line line = trace_line("history", meant.id);
  line.number("demoted", found.demoted).number("used", found.used).number("paths", found.paths);
  emit(line);
}

void put_in_order(const intent& meant, std::vector<candidate>& list) {
  source_probe probe;
  for (candidate& c : list) {
    probe.probe(c, 0);
    c.translation_length = translation_length(meant.nat64, c.destination);
  }
  recall_history(meant, list, recall_from::memory);
  describe_sources(list);
  sort_by_preference(list, system_policy());
}

// Puts `found` into the place of `list`, in order. False if that changes nothing.
bool replace(const intent& meant, std::vector<candidate>& list, std::vector<candidate> found,
             with_history history) {
  const auto same_endpoint = [](const candidate& a, const candidate& b) {
    return a.destination == b.destination && a.port == b.port &&
           a.service_priority == b.service_priority && a.hinted == b.hinted;
  };
  bool changed = list.size() != found.size();
  source_probe probe;
  for (candidate& c : found) {
    const auto known = std::find_if(list.begin(), list.end(), [&](const candidate& k) {
      return k.destination == c.destination;
    });
    changed = changed || std::none_of(list.begin(), list.end(),
                                      [&](const candidate& k) { return same_endpoint(k, c); });
    if (known == list.end()) {
      probe.probe(c, 0);
      c.translation_length = translation_length(meant.nat64, c.destination);
      continue;
    }
    candidate kept = *known;  // what the kernel and the past say of the address holds
    kept.port = c.port;
    kept.weight = c.weight;
    kept.in_turn = c.in_turn;
    kept.service_priority = c.service_priority;
    kept.service_rank = c.service_rank;
    kept.hinted = c.hinted;
    c = kept;
  }
  if (!changed) return false;
  recall_history(meant, found, history);
  describe_sources(found);
  sort_by_preference(found, system_policy());
  list = std::move(found);
  return true;
}

bool mentions(const resolution& state, const address& a) {
  const answer* found = state.answered(record_for(a.family));
  return found != nullptr &&
         std::find(found->addresses.begin(), found->addresses.end(), a) != found->addresses.end();
}

bool add_answers(intent& meant, const resolution& state, with_history history) {
  if (meant.unconfirmed && !mentions(state, meant.candidates.front().destination)) return false;
  meant.unconfirmed = false;
  meant.by_srv = state.by_srv();
  const bool own = replace(meant, meant.candidates, own_candidates(state), history);
  const bool more =
      replace(meant, meant.service_candidates,
              service_candidates(state, meant.service_port, meant.keep_hints), history);
  if (own) trace_order(meant.id, "order", meant.candidates);
  if (more) trace_order(meant.id, "service_order", meant.service_candidates);
  return own || more;
}

// The kinds of the answers, as bits; what has not been answered has timed out.
unsigned kinds_of_answers(const resolution& state) {
  unsigned kinds = 0;
  for (const record_type type : {record_type::aaaa, record_type::a}) {
    if (!state.asked(family_of(type))) continue;
    const answer* a = state.answered(type);
    kinds |= 1u << static_cast<unsigned>(a == nullptr ? answer_kind::timed_out : a->kind);
  }
  return kinds;
}

constexpr unsigned bit(answer_kind kind) { return 1u << static_cast<unsigned>(kind); }

constexpr unsigned no_address_at_all =
    bit(answer_kind::no_data) | bit(answer_kind::name_error) | bit(answer_kind::hollow);

refusal refusal_of(const resolution& state) {
  refusal all = refusal::unreachable;
  for (const record_type type : {record_type::aaaa, record_type::a}) {
    const answer* a = state.answered(type);
    if (a != nullptr && a->kind == answer_kind::server_failure) all = merge(all, a->refused);
  }
  return all;
}

// h_errno after nothing but failures; nullopt where it takes glibc to know.
std::optional<name_verdict> verdict_on_failure(refusal how) {
  switch (how) {
    case refusal::unreachable: return name_verdict::unreachable;
    case refusal::servfail: return name_verdict::servfail;
    case refusal::other_code: return name_verdict::out_of_time;
    case refusal::several: break;
  }
  return std::nullopt;
}

// What glibc makes of a name without addresses; nullopt where it takes glibc to know.
std::optional<name_verdict> verdict_on(const resolution& state, const resolver_config& config) {
  const unsigned kinds = kinds_of_answers(state);
  if ((kinds & bit(answer_kind::not_sent)) != 0) return std::nullopt;
  if ((kinds & bit(answer_kind::timed_out)) != 0) return name_verdict::out_of_time;
  // Over TCP glibc takes these replies for answers.
  if (kinds == bit(answer_kind::server_failure) && !config.use_vc)
    return verdict_on_failure(refusal_of(state));
  if ((kinds & ~no_address_at_all) != 0) return std::nullopt;
  if ((kinds & bit(answer_kind::hollow)) != 0) return name_verdict::hollow;
  return kinds == bit(answer_kind::no_data) ? name_verdict::no_data : name_verdict::no_name;
}

bool is_failure(name_verdict v) {
  return v == name_verdict::servfail || v == name_verdict::out_of_time ||
         v == name_verdict::unreachable;
}

// What getaddrinfo() makes of h_errno.
int error_code(name_verdict v) {
  if (v == name_verdict::no_data) return EAI_NODATA;
  return is_failure(v) ? EAI_AGAIN : EAI_NONAME;
}

// The same by way of gethostbyname2(), for which it matters how the last query ended; nullopt where errno
// decides as the program has left it. `hollow`: all that was asked for was so.
std::optional<int> old_error_code(const name_search& search, bool hollow) {
  const name_verdict v = search.result();
  if (v == name_verdict::hollow && hollow) return EAI_NODATA;
  if (is_failure(v) && !is_failure(search.last())) return EAI_NONAME;
  if (v == name_verdict::no_name && is_failure(search.last())) return std::nullopt;
  return error_code(v);
}

std::string canonical_name(const resolution& state, const name_plan& plan) {
  for (const record_type type : {record_type::a, record_type::aaaa}) {
    const answer* a = state.answered(type);
    if (a != nullptr && a->kind == answer_kind::positive) return a->canonical_name;
  }
  return plan.name;
}

// QUERY-3: where the service records of `name` are, if one of the services is at `port`.
// RFC 9460 s2.3, s9.1: https at its own port needs no prefix.
void ask_for_service(resolution::settings& s, const std::string& name, std::uint16_t port,
                     const resolve_options& options) {
  const auto service =
      std::find_if(options.services.begin(), options.services.end(),
                   [port](const known_service& k) { return k.port == port && port != 0; });
  if (service == options.services.end()) return;
  const bool https = service->scheme == "https";
  s.service_type = https ? record_type::https : record_type::svcb;
  s.service_name = name;
  if (!https || port != https_port)
    s.service_name = '_' + std::to_string(port) + "._" + service->scheme + '.' + name;
  if (!is_host_name(s.service_name)) s.service_name.clear();  // longer than a name can be
}

// The listed SRV service that a lookup is for: by its name, or by its port where that is listed, too.
const happy_srv_service* srv_service_of(const char* service, std::uint16_t port,
                                        const resolve_options& options) {
  const auto is_meant = [&](const happy_srv_service& s) {
    return s.name[0] != 0 && ((service != nullptr && equal_ignoring_case(service, s.name)) ||
                              (s.port != 0 && s.port == port));
  };
  const auto found = std::find_if(options.srv.begin(), options.srv.end(), is_meant);
  return found == options.srv.end() ? nullptr : &*found;
}

void ask_for_srv(resolution::settings& s, const happy_srv_service& service) {
  const std::string owner = '_' + std::string(service.name) + "._tcp." + s.name;
  if (!is_host_name(owner)) return;
  s.service_name = owner;
  s.service_type = record_type::srv;
  s.in_reserve.reset();
}

resolution::settings settings_for(const wish& w, const name_plan& plan, std::uint16_t port,
                                  const resolve_options& options, time_point now) {
  resolution::settings s;
  s.name = plan.name;
  s.ipv4 = w.af != AF_INET6;
  s.ipv6 = w.af != AF_INET;
  if ((w.flags & AI_ADDRCONFIG) != 0 && w.af == AF_UNSPEC) {
    const configured_families configured = families_configured();
    // Neither configured: glibc asks for both.
    if (configured.ipv4 != configured.ipv6) {
      s.ipv4 = configured.ipv4 || !options.nat64.empty();  // V6ONLY-4
      s.ipv6 = configured.ipv6;
    }
  }
  if (plan.config->no_aaaa) s.ipv6 = false;
  s.preferred = preferred_family();
  s.delay = options.resolution_delay;
  s.companion_delay = options.v2 ? duration(0) : companion_delay_for(options.resolution_delay);
  if (options.v2) s.preferred = family::ipv6;
  // A datagram client never comes to connect() a second address: it needs both families now.
  s.complete = options.complete || w.socktype == SOCK_DGRAM;
  s.deadline = now + glibc_patience(*plan.config);
  if (s.complete) return s;
  if (s.ipv4 && s.ipv6 && s.preferred == family::ipv4 && !has_connectivity(family::ipv6))
    s.in_reserve = family::ipv6;
  // QUERY-2: there may be a prefix; by the time of connect() it is known.
  if (!s.ipv4 && w.af == AF_UNSPEC && options.nat64_sought) {
    s.ipv4 = true;
    s.in_reserve = family::ipv4;
  }
  ask_for_service(s, plan.name, port, options);
  s.seed = static_cast<std::uint32_t>(now.time_since_epoch().count());
  return s;
}

intent begin_intent(std::uint64_t id, const std::string& name, int af, time_point now) {
  intent meant;
  meant.id = id;
  meant.name = name;
  meant.thread = raw_gettid();
  meant.made = now;
  meant.ipv4 = af != AF_INET6;
  meant.ipv6 = af != AF_INET;
  return meant;
}

declined decline(std::uint64_t id, const char* name, const char* reason) {
  trace_decline(id, name, reason);
  return {};
}

}  // namespace

std::vector<known_service> services_from(const happy_settings& settings) {
  if (settings.service_records == 0) return {};
  std::vector<known_service> services{{https_port, "https"}};
  for (const happy_service& s : settings.services) {
    if (s.port != 0) services.push_back({s.port, s.scheme});
  }
  return services;
}

std::variant<declined, resolved, std::unique_ptr<name_resolution>> name_resolution::begin(
    std::uint64_t id, const happy_question& question, const system_snapshot& files,
    const resolve_options& options, time_point now) {
  wish w = read_hints(question.hints);
  trace_lookup(id, question);
  if (options.bridge) w = {.flags = w.flags & ~AI_ADDRCONFIG, .af = AF_UNSPEC};
  if (!flags_are_plain(w, options)) return decline(id, question.node, "flags");
  auto planned = plan_name(question.node, files);
  if (const auto* reason = std::get_if<decline_reason>(&planned)) {
    return decline(id, question.node, to_text(*reason));
  }
  if (!thread_resolver_agrees(*std::get<name_plan>(planned).config)) {
    return decline(id, question.node, "the program's own resolver state");
  }
  // glibc makes up an empty AAAA answer, and follows no alias for it.
  if (w.af == AF_INET6 && std::get<name_plan>(planned).config->no_aaaa)
    return decline(id, question.node, "no-aaaa");
  auto form = make_template(question.service, question.hints);
  if (const int* code = std::get_if<int>(&form)) {
    if (*code == EAI_SYSTEM || *code == EAI_MEMORY)
      return decline(id, question.node, "no template");
    return resolved{.code = *code};
  }
  std::unique_ptr<name_resolution> r(new name_resolution);
  r->id_ = id;
  r->node_ = question.node;
  r->flags_ = w.flags;
  r->af_ = w.af;
  r->socktype_ = w.socktype;
  r->complete_ = options.complete || (w.socktype != 0 && w.socktype != SOCK_STREAM);
  r->plan_ = std::move(std::get<name_plan>(planned));
  r->search_ = name_search(std::move(r->plan_.steps));
  r->form_ = std::get<addrinfo_template>(form);
  const std::uint16_t named_port = r->form_.kinds.empty() ? 0 : r->form_.kinds[0].port;
  r->port_ = named_port != 0 ? named_port : options.usual_port;
  r->srv_ = srv_service_of(question.service, named_port, options);
  if (named_port != 0 && named_port != options.companion_port) r->wants_companions_ = false;
  r->meant_ = begin_intent(id, r->node_, w.af, now);
  r->meant_.service_unknown = named_port == 0;
  r->meant_.keep_hints = options.keep_hints;
  r->meant_.nat64 = options.nat64;
  r->options_ = options;
  r->ask(now);
  return r;
}

void name_resolution::ask(time_point now) {
  plan_.name = search_.name();
  resolution::settings settings =
      settings_for({flags_, af_, socktype_}, plan_, port_, options_, now);
  if (!settings.complete && srv_ != nullptr) ask_for_srv(settings, *srv_);
  meant_.service_port = settings.service_name.empty() ? 0 : port_;
  if (!settings.complete && settings.service_name.empty() && wants_companions_ &&
      !options_.companions.empty()) {
    settings.companions = options_.companions;
    meant_.service_port = options_.companion_port;
  }
  const bool ipv4_unasked = !settings.ipv4 || settings.in_reserve == family::ipv4;
  if (options_.ipv6_only && af_ == AF_UNSPEC && ipv4_unasked)
    meant_.last_resort = std::make_shared<const name_plan>(plan_);
  lookup_ = std::make_unique<lookup>(id_, plan_, settings);
}

std::optional<std::variant<declined, resolved>> name_resolution::turn(time_point now) {
  for (;;) {
    const std::optional<move_on> reason = move_on_now(now);
    if (!reason) return std::nullopt;
    trace_move_on(id_, *reason, !lookup_->state().all_answered());
    if (lookup_->state().any_positive()) return outcome(now);
    if (lookup_->state().not_available()) return resolved{.code = EAI_NONAME};
    const std::optional<name_verdict> verdict = verdict_on(lookup_->state(), *plan_.config);
    if (!verdict) return decline(id_, node_.c_str(), "glibc knows what that means");
    if (!search_.go_on(*verdict)) return failure();
    ask(now);
  }
}

std::optional<move_on> name_resolution::move_on_now(time_point now) {
  const std::optional<move_on> reason = lookup_->turn(now);
  if (!reason || *reason == move_on::deadline || !wants_to_bind(lookup_->state())) return reason;
  lookup_->want_all();
  return lookup_->turn(now);
}

// AI_PASSIVE with a name: most of these programs connect all the same (lftp, socat); one that wants to bind
// asks for a name of this host, and binds to all its addresses.
bool name_resolution::wants_to_bind(const resolution& state) const {
  if ((flags_ & AI_PASSIVE) == 0 || state.all_answered()) return false;
  std::vector<candidate> found = own_candidates(state);
  source_probe probe;
  for (candidate& c : found) probe.probe(c, 0);
  return std::any_of(found.begin(), found.end(), is_own);
}

// gethostbyname2() serves AF_INET alone, and what AI_ADDRCONFIG makes of AF_UNSPEC.
bool name_resolution::asks_by_old_function(const resolution& state) const {
  const bool ipv4_alone =
      !state.asked(family::ipv6) && !(af_ == AF_UNSPEC && plan_.config->no_aaaa);
  return ipv4_alone && (flags_ & AI_CANONNAME) == 0;
}

std::variant<declined, resolved> name_resolution::failure() const {
  const resolution& state = lookup_->state();
  if (options_.bridge) return decline(id_, node_.c_str(), "nothing to bridge to");
  if (!plan_.nothing_after_dns) return decline(id_, node_.c_str(), "negative answer not final");
  if (!asks_by_old_function(state)) return resolved{.code = error_code(search_.result())};
  const bool hollow = kinds_of_answers(state) == bit(answer_kind::hollow);
  const std::optional<int> code = old_error_code(search_, hollow);
  if (!code) return decline(id_, node_.c_str(), "errno decides");
  return resolved{.code = *code};
}

std::variant<declined, resolved> name_resolution::outcome(time_point now) {
  if (options_.bridge) return bridge_outcome(now);
  const resolution& state = lookup_->state();
  if (is_irregular(state)) return decline(id_, node_.c_str(), "more addresses than are kept");
  resolved out;
  out.meant = meant_;
  out.meant.made = now;
  if (search_.has_list()) out.meant.full_name = plan_.name + '.';
  // Who compares addresses is to see libc's order.
  add_answers(out.meant, state, complete_ ? std::nullopt : with_history(recall_from::all));
  if (state.answered(record_type::a) != nullptr) out.meant.last_resort = nullptr;
  std::vector<address>& addresses = out.meant.handed;
  for (const candidate& c : out.meant.candidates) {
    const bool handed =
        std::find(addresses.begin(), addresses.end(), c.destination) != addresses.end();
    if (!handed) addresses.push_back(c.destination);
  }
  const std::string canonical = canonical_name(state, plan_);
  out.list = build_addrinfo_list(addresses, form_,
                                 (flags_ & AI_CANONNAME) != 0 ? canonical.c_str() : nullptr);
  if (out.list == nullptr) out.code = EAI_MEMORY;
  out.meant.partial = !(state.by_srv() ? state.all_answered() : state.own_addresses_answered());
  if (state.by_srv()) {
    for (const resolution::service& s : state.services()) out.targets.push_back(s.record);
  }
  if (!state.all_answered()) out.open = std::move(lookup_);
  return out;
}

// Only where it is certain that there is no IPv4 address.
std::variant<declined, resolved> name_resolution::bridge_outcome(time_point now) {
  const resolution& state = lookup_->state();
  const answer* ipv4 = state.answered(record_type::a);
  const answer* ipv6 = state.answered(record_type::aaaa);
  const bool bridges = ipv4 != nullptr && ipv4->kind == answer_kind::no_data && ipv6 != nullptr &&
                       ipv6->kind == answer_kind::positive && !is_irregular(state);
  if (!bridges) return decline(id_, node_.c_str(), "nothing to bridge to");
  resolved out{.bridged = true};
  out.meant = meant_;
  out.meant.made = now;
  add_late_answers(out.meant, state);
  const std::string canonical = canonical_name(state, plan_);
  out.list = build_addrinfo_list({&*options_.bridge, 1}, form_,
                                 (flags_ & AI_CANONNAME) != 0 ? canonical.c_str() : nullptr);
  if (out.list == nullptr) return decline(id_, node_.c_str(), "no memory");
  return out;
}

intent intent_of(std::uint64_t id, const happy_question& question, const addrinfo* list,
                 time_point now) {
  const wish w = read_hints(question.hints);
  intent meant = begin_intent(id, question.node, w.af, now);
  if (w.socktype != 0 && w.socktype != SOCK_STREAM) return meant;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    endpoint where;
    if (!from_sockaddr(entry->ai_addr, entry->ai_addrlen, where)) continue;
    if (contains(meant.candidates, where.address)) continue;
    if (meant.candidates.size() == max_candidates) break;
    meant.candidates.push_back({.destination = where.address});
  }
  put_in_order(meant, meant.candidates);
  trace_order(id, "order", meant.candidates);
  return meant;
}

intent intent_of(std::uint64_t id, const char* name, const hostent& answer, time_point now) {
  intent meant = begin_intent(id, name, answer.h_addrtype, now);
  for (char** item = answer.h_addr_list; item != nullptr && *item != nullptr; ++item) {
    if (meant.candidates.size() == max_candidates) break;
    in_addr in4{};
    in6_addr in6{};
    if (answer.h_addrtype == AF_INET) std::memcpy(&in4, *item, sizeof in4);
    if (answer.h_addrtype == AF_INET6) std::memcpy(&in6, *item, sizeof in6);
    const address where = answer.h_addrtype == AF_INET ? from_in_addr(in4) : from_in6_addr(in6);
    if (!contains(meant.candidates, where)) meant.candidates.push_back({.destination = where});
  }
  put_in_order(meant, meant.candidates);
  trace_order(id, "order", meant.candidates);
  return meant;
}

bool add_late_answers(intent& meant, const resolution& state) {
  return add_answers(meant, state, recall_from::memory);
}

bool add_last_resort(intent& meant, const resolution& state) {
  const answer* found = state.answered(record_type::a);
  if (found == nullptr) return false;
  std::vector<candidate> both = meant.candidates;
  for (const address& a : found->addresses) {
    if (both.size() < max_candidates && !contains(both, a)) both.push_back({.destination = a});
  }
  if (!replace(meant, meant.candidates, std::move(both), recall_from::memory)) return false;
  trace_order(meant.id, "order", meant.candidates);
  return true;
}

}  // namespace happy
