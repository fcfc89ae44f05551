// The readers of the system's files, and what a plan makes of all of them. The first line is the name that is asked
// for; a line of "--" ends a file: resolv.conf, nsswitch.conf, hosts, gai.conf.

#include <algorithm>

#include "resolver/host_name.h"
#include "resolver/name_plan.h"
#include "tests/fuzz/target.h"

namespace {

std::string_view take_part(std::string_view& rest, std::string_view end) {
  const std::size_t at = rest.find(end);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + end.size());
  return part;
}

void check_config(const happy::resolver_config& config) {
  using happy::fuzz::expect;
  expect(!config.nameservers.empty(), "there is a nameserver");
  expect(config.search.size() <= happy::max_search_domains, "the search list is bounded");
  expect(config.timeout_s >= 1 && config.timeout_s <= happy::max_timeout_s, "timeout");
  expect(config.attempts >= 1 && config.attempts <= happy::max_attempts, "attempts");
  expect(config.ndots >= 0 && config.ndots <= happy::max_ndots, "ndots");
  const happy::duration round = glibc_round(config);
  expect(round >= std::chrono::seconds(1) && round <= std::chrono::minutes(5), "a round ends");
}

// Whatever the nameservers say, each name is asked at most once for its place, and there is an end.
void check_search(const happy::name_plan& plan) {
  using namespace happy;
  fuzz::expect(plan.steps.size() <= max_search_domains + 2, "the search is bounded");
  for (const search_step& step : plan.steps)
    fuzz::expect(!step.name.empty() && step.name.size() <= max_name_length, "a name can be asked");
  for (const name_verdict v : {name_verdict::no_name, name_verdict::no_data, name_verdict::servfail,
                               name_verdict::out_of_time, name_verdict::unreachable}) {
    name_search search(plan.steps);
    std::size_t asked = 1;
    while (search.go_on(v)) ++asked;
    fuzz::expect(asked <= plan.steps.size(), "it ends");
    fuzz::expect(search.result() == v, "where all say the same, that holds");
  }
}

}  // namespace

FUZZ_TARGET(system_files) {
  using namespace happy;
  std::string_view rest(reinterpret_cast<const char*>(data.data()), data.size());
  const std::string_view name = take_part(rest, "\n");
  const std::string_view resolv_conf = take_part(rest, "--\n");
  const std::string_view nsswitch_conf = take_part(rest, "--\n");
  const std::string_view hosts = take_part(rest, "--\n");

  system_snapshot files;
  resolver_environment environment;
  environment.interface_index = [](const char*) { return 2u; };
  auto parsed = parse_resolv_conf(resolv_conf, environment);
  if (auto* config = std::get_if<resolver_config>(&parsed)) {
    check_config(*config);
    files.resolver = std::make_shared<const resolver_config>(std::move(*config));
  }
  if (auto services = parse_nsswitch(nsswitch_conf)) {
    fuzz::expect(services->size() <= max_name_services, "modules are bounded");
    files.services = std::move(*services);
  }
  files.hosts = std::make_shared<const hosts_names>(hosts);
  files.gai_conf_reloads = gai_conf_has_reload(rest);
  const auto planned = plan_name(name, files);
  if (const auto* plan = std::get_if<name_plan>(&planned)) {
    fuzz::expect(!files.hosts->mention(name), "a name in hosts is not asked of the DNS");
    fuzz::expect(plan->config != nullptr, "it can be asked");
    check_search(*plan);
  }
}
