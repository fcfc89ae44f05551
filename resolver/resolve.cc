#include "resolver/resolve.h"

#include <algorithm>

#include "resolver/connectivity.h"
#include "resolver/endpoints.h"
#include "resolver/lookup_intent.h"
#include "resolver/name_failure.h"
#include "resolver/source_address.h"
#include "resolver/thread_resolver.h"
#include "resolver/trace.h"
#include "shim/base/real_functions.h"

namespace happy {
namespace {

// As far as the answers say.
bool fails_at_ipv4(const resolution& state, const resolver_config& config) {
  const answer* ipv4 = state.answered(record_type::a);
  return config.one_by_one && state.asked(family::ipv6) && ipv4 != nullptr &&
         ipv4->kind == answer_kind::server_failure;
}

// Flags whose effect on the answer is glibc's business.
bool flags_are_plain(const wish& w, const resolve_options& options) {
  constexpr int idn_out = AI_CANONNAME | AI_CANONIDN;  // libidn2 would have its say
  if ((w.flags & idn_out) == idn_out) return false;
  if (!w.configured || w.af == AF_UNSPEC) return true;
  const bool ipv4 = w.configured->ipv4 || !options.nat64.empty();
  return w.af == AF_INET ? ipv4 : w.configured->ipv6;
}

// Whether either family's answer is so.
bool any_answer(const resolution& state, bool answer::*property) {
  for (const record_type type : {record_type::aaaa, record_type::a}) {
    const answer* a = state.answered(type);
    if (a != nullptr && a->*property) return true;
  }
  return false;
}

bool is_irregular(const resolution& state) { return any_answer(state, &answer::irregular); }

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

std::string canonical_name(const resolution& state, const name_plan& plan) {
  for (const record_type type : {record_type::a, record_type::aaaa}) {
    const answer* a = state.answered(type);
    if (a != nullptr && a->kind == answer_kind::positive) return a->canonical_name;
  }
  return plan.name;
}

constexpr const char* glibc_goes_on = "glibc asks for one family after the other";

// What the program is handed. Of SRV's targets those of the best priority alone, at the ports of their records: a program
// that races by itself is not to try the next priority before its time (XMPP-2).
std::vector<endpoint> endpoints_of(const intent& meant) {
  std::vector<endpoint> all;
  for (const candidate& c : meant.candidates) {
    if (c.in_turn && !same_group(c, meant.candidates.front())) break;
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&](const endpoint& e) { return e.address == c.destination; });
    if (!known) all.push_back({c.destination, c.in_turn ? c.port : std::uint16_t{0}});
  }
  return all;
}

std::vector<endpoint> at_any_port(const std::vector<address>& addresses) {
  std::vector<endpoint> all;
  all.reserve(addresses.size());
  for (const address& a : addresses) all.push_back({a, 0});
  return all;
}

// By SRV there are endpoints that the program does not get to see.
bool holds_back(const intent& meant) {
  return meant.by_srv && !same_group(meant.candidates.front(), meant.candidates.back());
}

declined decline(std::uint64_t id, const char* name, const char* reason) {
  trace_decline(id, name, reason);
  return {};
}

}  // namespace

std::variant<declined, resolved, std::unique_ptr<name_resolution>> name_resolution::begin(
    std::uint64_t id, const happy_question& question, const system_snapshot& files,
    const resolve_options& options, time_point now) {
  wish w = read_hints(question.hints);
  trace_lookup(id, question);
  if (options.bridge) w = {.flags = w.flags & ~AI_ADDRCONFIG, .af = AF_UNSPEC};
  auto planned = plan_name(question.node, files);
  if (const auto* reason = std::get_if<decline_reason>(&planned)) {
    return decline(id, question.node, to_text(*reason));
  }
  if (options.as_host && files.reorders_hosts) return decline(id, question.node, "host.conf");
  if (!thread_resolver_agrees(*std::get<name_plan>(planned).config)) {
    return decline(id, question.node, "the program's own resolver state");
  }
  w = look_at_host(w, options);
  if (!flags_are_plain(w, options)) return decline(id, question.node, "flags");
  // glibc makes up an empty AAAA answer, and follows no alias for it.
  if (w.af == AF_INET6 && std::get<name_plan>(planned).config->no_aaaa)
    return decline(id, question.node, "no-aaaa");
  auto form =
      options.as_host ? addrinfo_template{} : make_template(question.service, question.hints);
  if (const int* code = std::get_if<int>(&form)) {
    if (*code == EAI_SYSTEM || *code == EAI_MEMORY)
      return decline(id, question.node, "no template");
    return resolved{.code = *code};
  }
  std::unique_ptr<name_resolution> r(new name_resolution);
  r->id_ = id;
  r->node_ = question.node;
  r->wish_ = w;
  r->complete_ = options.complete || (w.socktype != 0 && w.socktype != SOCK_STREAM);
  r->plan_ = std::move(std::get<name_plan>(planned));
  r->search_ = name_search(std::move(r->plan_.steps));
  r->form_ = std::get<addrinfo_template>(form);
  const std::uint16_t named_port = r->form_.kinds.empty() ? 0 : r->form_.kinds[0].port;
  r->port_ = named_port != 0 || options.as_host ? named_port : options.usual_port;
  const bool maps = w.mapping() != v4_mapping::none;
  // Who may want to bind means an address of its own host, never an SRV target's.
  if (!maps && (w.flags & AI_PASSIVE) == 0)
    r->srv_ = srv_service_of(question.service, named_port, options);
  r->wants_companions_ =
      !maps && !options.as_host && (named_port == 0 || named_port == options.companion_port);
  r->meant_ = begin_intent(id, r->node_, maps ? AF_UNSPEC : w.af, now);
  r->meant_.as_mapped = maps;
  r->meant_.service_unknown = named_port == 0;
  r->meant_.follows_srv = options.companion_port != 0;
  r->meant_.keep_hints = options.keep_hints;
  r->meant_.nat64 = options.nat64;
  r->options_ = options;
  r->ask(now);
  return r;
}

void name_resolution::ask(time_point now) {
  plan_.name = search_.name();
  resolution::settings settings = settings_for(wish_, plan_, port_, options_, now);
  settings.in_dns = [files = options_.files](const std::string& target) {
    if (files == nullptr) return true;
    const auto planned = plan_name(target + '.', *files);
    const auto* reason = std::get_if<decline_reason>(&planned);
    return reason == nullptr || *reason != decline_reason::in_hosts_file;
  };
  if (!settings.complete && srv_ != nullptr) ask_for_srv(settings, *srv_);
  meant_.service_port = settings.service_name.empty() ? 0 : port_;
  if (!settings.complete && settings.service_name.empty() && wants_companions_ &&
      !options_.companions.empty()) {
    settings.companions = options_.companions;
    meant_.service_port = options_.companion_port;
  }
  const bool ipv4_unasked = !settings.ipv4 || settings.in_reserve == family::ipv4;
  if (options_.ipv6_only && wish_.af == AF_UNSPEC && ipv4_unasked)
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
  if ((wish_.flags & AI_PASSIVE) == 0 || state.all_answered()) return false;
  std::vector<candidate> found = own_candidates(state);
  source_probe probe;
  for (candidate& c : found) probe.probe(c, 0);
  return std::any_of(found.begin(), found.end(), is_own);
}

// As far as glibc is concerned, which may make up the answer to one.
bool name_resolution::asks_for_both(const resolution& state) const {
  const bool ipv6 = state.asked(family::ipv6) || (wish_.af == AF_UNSPEC && plan_.config->no_aaaa);
  return state.asked(family::ipv4) && ipv6;
}

// gethostbyname2() serves AF_INET alone, and what AI_ADDRCONFIG makes of AF_UNSPEC.
bool name_resolution::asks_by_old_function(const resolution& state) const {
  return state.asked(family::ipv4) && !asks_for_both(state) && (wish_.flags & AI_CANONNAME) == 0;
}

std::variant<declined, resolved> name_resolution::failure() const {
  const resolution& state = lookup_->state();
  if (options_.bridge) return decline(id_, node_.c_str(), "nothing to bridge to");
  if (!plan_.nothing_after_dns) {
    declined unfinished = decline(id_, node_.c_str(), "negative answer not final");
    unfinished.nameservers_silent =
        plan_.goes_past_silence && error_code(search_.result()) == EAI_AGAIN;
    return unfinished;
  }
  if (wish_.mapping() != v4_mapping::none) {
    const std::optional<int> code = mapped_error_code(state, search_);
    if (!code) return decline(id_, node_.c_str(), glibc_goes_on);
    return resolved{.code = *code, .left_error = mapped_resolver_error(state, wish_.mapping())};
  }
  if (options_.as_host) {
    const std::optional<host_failure> why = host_failure_of(search_, is_hollow(state));
    if (!why) return decline(id_, node_.c_str(), "glibc knows what that means");
    return resolved{.code = why->code, .host = host_answer{.resolver_error = why->resolver_error}};
  }
  const bool hollow = search_.result() == name_verdict::hollow;
  const int left =
      hollow && asks_for_both(state) ? HOST_NOT_FOUND : resolver_error(search_.result());
  if (!asks_by_old_function(state))
    return resolved{.code = error_code(search_.result()), .left_error = left};
  const std::optional<int> code = old_error_code(search_, is_hollow(state));
  if (!code) return decline(id_, node_.c_str(), "errno decides");
  return resolved{.code = *code, .left_error = left};
}

std::variant<declined, resolved> name_resolution::outcome(time_point now) {
  if (options_.bridge) return bridge_outcome(now);
  const resolution& state = lookup_->state();
  if (is_irregular(state)) return decline(id_, node_.c_str(), "more addresses than are kept");
  if (fails_at_ipv4(state, *plan_.config)) return decline(id_, node_.c_str(), glibc_goes_on);
  if ((wish_.flags & AI_CANONNAME) != 0 && any_answer(state, &answer::odd_chain))
    return decline(id_, node_.c_str(), "glibc shows it in its own way");
  if (wish_.mapping() != v4_mapping::none &&
      !mapping_agrees(state, wish_.mapping(), search_.has_list())) {
    return decline(id_, node_.c_str(), glibc_goes_on);
  }
  resolved out;
  out.meant = meant_;
  out.meant.made = now;
  if (search_.has_list()) out.meant.full_name = plan_.name + '.';
  // Who compares addresses is to see libc's order.
  add_answers(out.meant, state, complete_ ? std::nullopt : with_history(recall_from::all));
  if (options_.as_host) return host_outcome(std::move(out), state);
  if (state.answered(record_type::a) != nullptr) out.meant.last_resort = nullptr;
  std::vector<endpoint> endpoints = endpoints_of(out.meant);
  for (const endpoint& e : endpoints) out.meant.handed.push_back(e.address);
  if (wish_.mapping() != v4_mapping::none) endpoints = at_any_port(mapped_order(state));
  const std::string canonical = canonical_name(state, plan_);
  out.list = build_addrinfo_list(endpoints, form_,
                                 (wish_.flags & AI_CANONNAME) != 0 ? canonical.c_str() : nullptr);
  if (out.list == nullptr) out.code = EAI_MEMORY;
  out.left_error = left_by_success(state);
  out.meant.outgrown = holds_back(out.meant);
  out.meant.partial = out.meant.outgrown ||
                      !(state.by_srv() ? state.all_answered() : state.own_addresses_answered());
  if (!state.all_answered()) out.open = std::move(lookup_);
  return out;
}

// Of two answers it is the last one that glibc reads: mostly AAAA's, which was asked for last.
int name_resolution::left_by_success(const resolution& state) const {
  if (wish_.mapping() != v4_mapping::none) return mapped_resolver_error(state, wish_.mapping());
  const answer* ipv6 = state.answered(record_type::aaaa);
  return ipv6 == nullptr || ipv6->kind == answer_kind::positive ? 0 : HOST_NOT_FOUND;
}

std::variant<declined, resolved> name_resolution::host_outcome(resolved&& out,
                                                               const resolution& state) const {
  const answer* found = state.answered(wish_.af == AF_INET ? record_type::a : record_type::aaaa);
  out.host = host_answer_of(*found);
  if (!out.host) return decline(id_, node_.c_str(), "glibc shows it in its own way");
  out.host->left_error = left_error(search_);
  out.meant.handed = out.host->addresses;
  return std::move(out);
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
  const endpoint bridge{*options_.bridge, 0};
  out.list = build_addrinfo_list({&bridge, 1}, form_,
                                 (wish_.flags & AI_CANONNAME) != 0 ? canonical.c_str() : nullptr);
  if (out.list == nullptr) return decline(id_, node_.c_str(), "no memory");
  return out;
}

}  // namespace happy
