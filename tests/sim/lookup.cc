#include "tests/sim/lookup.h"

#include <algorithm>

#include "resolver/endpoints.h"

namespace happy::sim {
namespace {

resolution::settings settings_for(const world& w) {
  resolution::settings s;
  s.deadline = time_point(resolver_patience);
  s.last_chance = resolver_round;
  s.name = domain;
  if (w.asks_for_service) s.service_name = domain;
  if (!w.targets.empty()) {
    s.service_name = "_service._tcp.name.test";
    s.service_type = record_type::srv;
    s.seed = static_cast<std::uint32_t>(random_numbers(~w.seed).next());
  }
  s.complete = w.waits_for_all;
  if (w.timing.profile == timing_profile::v2) s.companion_delay = duration(0);
  return s;
}

answer_kind kind_of(dns_reply reply) {
  switch (reply) {
    case dns_reply::positive: return answer_kind::positive;
    case dns_reply::no_data: return answer_kind::no_data;
    case dns_reply::name_error: return answer_kind::name_error;
    default: return answer_kind::server_failure;
  }
}

}  // namespace

name_lookup::name_lookup(const world& w)
    : world_(w), state_(settings_for(w)), unlisted_(w.paths.size(), false) {}

// Of world::targets, or past its end.
std::size_t name_lookup::target_of(std::size_t query) const {
  std::size_t i = 0;
  while (i < world_.targets.size() && target_name(i) != state_.name_of(query)) ++i;
  return i;
}

const query_fate& name_lookup::fate_of(std::size_t query) const {
  const record_type type = state_.type_of(query);
  if (type == record_type::https) return world_.service;
  if (type == record_type::srv) return world_.srv;
  const std::size_t target = target_of(query);
  if (target == world_.targets.size()) return type == record_type::aaaa ? world_.aaaa : world_.a;
  return type == record_type::aaaa ? world_.targets[target].aaaa : world_.targets[target].a;
}

bool name_lookup::take_answer(std::size_t query, time_point now) {
  answer a;
  a.type = state_.type_of(query);
  a.kind = kind_of(fate_of(query).reply);
  const bool positive = a.kind == answer_kind::positive;
  if (positive && a.type == record_type::srv) a.services = srv_records();
  if (positive && is_address(a.type)) {
    for (const address& where : addresses_of(target_of(query), family_of(a.type)))
      a.addresses.push_back(where);
    if (a.addresses.empty()) a.kind = answer_kind::no_data;
  }
  state_.handle(query, a, now);
  return !a.addresses.empty();
}

std::vector<address> name_lookup::addresses_of(std::size_t target, family f) const {
  std::vector<address> found;
  for (const path& p : world_.paths) {
    const bool is_its = std::min<std::size_t>(p.target, world_.targets.size()) == target;
    if (is_its && p.where.family == f && !p.in_reserve) found.push_back(p.where);
  }
  return found;
}

std::vector<service_record> name_lookup::srv_records() const {
  if (world_.srv_refuses) return {{.usable = false}};
  std::vector<service_record> records;
  for (std::size_t i = 0; i < world_.targets.size(); ++i) {
    const srv_target& t = world_.targets[i];
    records.push_back({.priority = t.priority,
                       .weight = t.weight,
                       .port = port_of(world_, static_cast<std::uint32_t>(i)),
                       .target = target_name(i)});
  }
  return records;
}

std::vector<listed_endpoint> name_lookup::list() const {
  std::vector<candidate> candidates;
  for (const candidate& c : own_candidates(state_)) {
    const std::size_t i = index_of(c.destination);
    if (!unlisted_[i]) candidates.push_back(reached_by(world_.paths[i], c));
  }
  for (const path& p : world_.paths) {
    if (p.in_reserve && last_resort_open_)
      candidates.push_back(reached_by(p, {.destination = p.where}));
  }
  sort_by_preference(candidates);
  std::vector<listed_endpoint> sorted;
  std::uint32_t group = 0;
  for (const candidate& c : candidates) {
    if (&c != candidates.data() && !same_group(c, *(&c - 1))) ++group;
    const path& p = world_.paths[index_of(c.destination)];
    sorted.push_back({.where = endpoint_of(world_, p),
                      .group = group,
                      .in_turn = c.in_turn,
                      .expected_handshake = p.remembered,
                      .answered_lately = p.lately});
  }
  return sorted;
}

// With what the kernel and the history say of it.
candidate name_lookup::reached_by(const path& p, candidate c) const {
  c.source = p.where;
  c.source.bytes[15] = c.source.bytes[3] = 200;
  c.has_source = p.routed;
  if (world_.targets.empty()) c.service_priority = p.group;
  c.rtt = p.remembered;
  return c;
}

std::size_t name_lookup::index_of(const address& where) const {
  std::size_t i = 0;
  while (world_.paths[i].where != where) ++i;
  return i;
}

// A number is drawn from 0 to the sum of the weights, inclusive. 0 falls to a target without weight, or where all
// have weight to the one whose record comes first.
srv_draw name_lookup::draw() const {
  if (state_.services().empty()) return {};
  const service_record& first = state_.services()[0].record;
  std::vector<int> weights;
  for (const srv_target& t : world_.targets) {
    if (t.priority == first.priority) weights.push_back(t.weight);
  }
  const int heaviest = *std::max_element(weights.begin(), weights.end());
  int sum = 0;
  int of_heaviest = 0;
  for (const int weight : weights) {
    sum += weight;
    if (weight == heaviest) of_heaviest += weight;
  }
  if (of_heaviest == sum) return {};
  const bool has_zero =
      weights.front() == heaviest && std::find(weights.begin(), weights.end(), 0) == weights.end();
  return {.chance = (of_heaviest + (has_zero ? 1.0 : 0.0)) / (sum + 1),
          .heaviest_first = first.weight == heaviest};
}

}  // namespace happy::sim
