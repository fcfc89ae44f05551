#include "resolver/nat64.h"

#include <algorithm>
#include <string_view>

#include "resolver/trace.h"

namespace happy {
namespace {

void trace_discovery(const prefix_list& found, const answer* a) {
  if (!trace_on()) return;
  json_line line = trace_line("pref64", 0);
  line.text("source", "dns").number("answered", a != nullptr ? 1 : 0);
  for (const nat64_prefix& p : found) line.text("prefix", to_text(p).chars);
  emit(line);
}

}  // namespace

nat64::nat64(const char* configured) {
  if (configured == nullptr) return;
  const std::string_view text(configured);
  off_ = text == "none";
  std::string_view ignored;
  if (!off_) read_prefixes(text, configured_, ignored);
}

prefix_list nat64::prefixes(time_point now) {
  if (off_ || !configured_.empty()) return configured_;
  hear_routers(now);
  return table_.current(now);
}

// In this order: a file that has changed counts instead of all that was known before.
void nat64::hear_routers(time_point now) {
  advertised_.refresh(table_, now);
  listener_.hear(table_, now);
}

void nat64::listen(time_point now) {
  if (listener_.is_open()) return hear_routers(now);
  if (!ipv6_only_ || off_ || !configured_.empty()) return;
  ipv6_only_ = listener_.open();  // one that cannot be had is not asked for again and again
  if (!ipv6_only_ || !trace_on()) return;
  json_line line = trace_line("pref64", 0);
  line.text("source", "router").number("listening", 1);
  emit(line);
}

bool nat64::may_discover(time_point now) {
  return !off_ && configured_.empty() && !table_.any_advertised(now) && !table_.is_discovered(now);
}

void nat64::begin_discovery(std::uint64_t id, const system_snapshot& files, time_point now) {
  const auto* config = std::get_if<std::shared_ptr<const resolver_config>>(&files.resolver);
  if (query_ != nullptr || config == nullptr || *config == nullptr) return;
  // RFC 7050 is about the network's own DNS: no hosts file, no search list.
  name_plan plan;
  plan.name = discovery_name;
  plan.nothing_after_dns = true;
  plan.config = *config;
  resolution::settings s;
  s.name = plan.name;
  s.ipv4 = false;
  s.complete = true;
  s.deadline = now + discovery_patience;
  query_ = std::make_unique<lookup>(id, plan, s);
  waited_for_ = true;
  turn(now);
}

bool nat64::turn(time_point now) {
  if (query_ == nullptr) return true;
  if (!query_->turn(now)) return false;
  conclude(now);
  return true;
}

void nat64::conclude(time_point now) {
  const answer* a = query_->state().answered(record_type::aaaa);
  prefix_list found;
  duration lifetime = silence_lifetime;
  if (a != nullptr) {
    found = discovered_prefixes({a->addresses.begin(), a->addresses.size()});
    const bool told = a->kind == answer_kind::positive || a->kind == answer_kind::no_data ||
                      a->kind == answer_kind::name_error;
    if (told) lifetime = no_prefix_lifetime;
    if (!found.empty())
      lifetime = std::clamp<duration>(a->ttl, least_prefix_lifetime, most_prefix_lifetime);
  }
  trace_discovery(found, a);
  table_.discover(found, now + lifetime);
  query_.reset();
}

void nat64::let_go(time_point now) {
  if (query_ != nullptr) query_->service(now);
}

void nat64::stop_waiting(time_point now) {
  waited_for_ = false;
  let_go(now);
}

std::optional<address> nat64::ipv4_behind(const address& a, time_point now) {
  if (a.family != family::ipv6) return std::nullopt;
  for (const nat64_prefix& prefix : prefixes(now)) {
    if (const auto inside = embedded_ipv4(prefix, a)) return inside;
  }
  return std::nullopt;
}

void nat64::close_sockets() {
  stop_listening();
  if (query_ == nullptr) return;
  query_->drop();
  [[maybe_unused]] const lookup* left = query_.release();
}

void nat64::forget() {
  listener_.hear(table_, time_point());  // what was said there
  table_.clear();
  advertised_.forget();
  query_.reset();
}

void nat64::note_network(std::uint64_t fingerprint) {
  if (network_ != 0 && network_ != fingerprint) forget();
  network_ = fingerprint;
}

}  // namespace happy
