#include "resolver/name_plan.h"

#include <algorithm>
#include <optional>

#include "resolver/host_name.h"
#include "resolver/text_scan.h"

namespace happy {
namespace {

// 192.0.2.1, 127.1, 0x7f000001, 1: never asked of the DNS.
bool is_numeric(std::string_view name) {
  in_addr ignored;
  return inet_aton(std::string(name).c_str(), &ignored) != 0;
}

bool is_below(std::string_view name, std::string_view domain) {
  if (equal_ignoring_case(name, domain)) return true;
  return ends_with_ignoring_case(name, domain) && name[name.size() - domain.size() - 1] == '.';
}

// RFC 6761 s6.3 and nss-myhostname. Not every system answers them without the DNS, but none answers
// them slowly.
bool is_local(std::string_view name, std::string_view host_name) {
  return is_below(name, "localhost") || is_below(name, "localhost.localdomain") ||
         equal_ignoring_case(name, "_gateway") || equal_ignoring_case(name, "_outbound") ||
         equal_ignoring_case(name, without_dot(host_name));
}

bool goes_on(const name_service& s, lookup_status after) {
  return s.on(after) == lookup_action::go_on;
}

// How a module ends that has nothing to say about the name: nss-mdns says UNAVAIL and so does one
// that is not installed, the others may say NOTFOUND.
bool goes_on_without_answer(const name_service& s, bool may_say_not_found) {
  const bool not_found = !may_say_not_found || goes_on(s, lookup_status::not_found);
  return not_found && goes_on(s, lookup_status::unavailable);
}

// nss-mdns without "_minimal" can be told in mdns.allow to handle any name.
bool is_minimal_mdns(std::string_view module) {
  return module == "mdns_minimal" || module == "mdns4_minimal" || module == "mdns6_minimal";
}

// nullopt: the module before dns cannot answer, and the search goes on to the next one.
std::optional<decline_reason> judge_before_dns(const name_service& s, std::string_view name) {
  if (is_minimal_mdns(s.module)) {
    if (is_below(name, "local")) return decline_reason::nsswitch_module;
    return goes_on_without_answer(s, false) ? std::nullopt
                                            : std::optional(decline_reason::nsswitch_odd);
  }
  // By now it is known that hosts does not have the name, and that it is not one of myhostname's.
  if (s.module == "files" || s.module == "myhostname") {
    return goes_on_without_answer(s, true) ? std::nullopt
                                           : std::optional(decline_reason::nsswitch_odd);
  }
  return decline_reason::nsswitch_module;
}

bool has_odd_action(const name_service& s) {
  return s.on(lookup_status::success) != lookup_action::stop ||
         std::find(s.actions.begin(), s.actions.end(), lookup_action::merge) != s.actions.end();
}

// Walks to dns; tells which one it is.
std::variant<std::size_t, decline_reason> judge_services(const std::vector<name_service>& services,
                                                         std::string_view name) {
  for (std::size_t i = 0; i < services.size(); ++i) {
    if (has_odd_action(services[i])) return decline_reason::nsswitch_odd;
    if (services[i].module == "dns") return i;
    if (const auto reason = judge_before_dns(services[i], name)) return *reason;
  }
  return decline_reason::nsswitch_module;
}

std::optional<decline_reason> judge_search(const name_plan& plan, bool absolute,
                                           const system_snapshot& files) {
  const bool dotless = !absolute && plan.name.find('.') == std::string::npos;
  if (dotless && files.host_aliases) return decline_reason::host_aliases;
  const bool sound = std::all_of(plan.steps.begin(), plan.steps.end(),
                                 [](const search_step& s) { return is_host_name(s.name); });
  return sound ? std::nullopt : std::optional(decline_reason::search_list);
}

std::optional<decline_reason> judge_files(std::string_view name, const system_snapshot& files) {
  if (files.gai_conf_reloads) return decline_reason::gai_conf;
  if (files.hosts_unreadable) return decline_reason::file_unreadable;
  if (is_local(name, files.host_name)) return decline_reason::local_name;
  if (files.hosts != nullptr && files.hosts->mention(name)) return decline_reason::in_hosts_file;
  return std::nullopt;
}

// A file that could not be judged has its reason in its place.
template <typename T>
std::optional<decline_reason> problem_with(const std::variant<T, decline_reason>& file) {
  const auto* reason = std::get_if<decline_reason>(&file);
  return reason == nullptr ? std::nullopt : std::optional(*reason);
}

}  // namespace

bool host_conf_reorders(std::string_view text) {
  bool on = false;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    line = line.substr(0, line.find('#'));
    if (!equal_ignoring_case(take_word(line, is_space), "reorder")) continue;
    on = equal_ignoring_case(take_word(line, is_space).substr(0, 2), "on");
  }
  return on;
}

bool gai_conf_has_reload(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    line = line.substr(0, line.find('#'));
    if (take_word(line, is_space) == "reload") return true;
  }
  return false;
}

std::variant<name_plan, decline_reason> plan_name(std::string_view node,
                                                  const system_snapshot& files) {
  const std::string_view name = without_dot(node);
  if (!is_host_name(name) || is_numeric(name)) return decline_reason::bad_name;
  if (const auto reason = judge_files(name, files)) return *reason;
  if (const auto reason = problem_with(files.services)) return *reason;
  if (const auto reason = problem_with(files.resolver)) return *reason;

  const std::vector<name_service>& services = *std::get_if<0>(&files.services);
  const auto place = judge_services(services, name);
  if (const auto reason = problem_with(place)) return *reason;

  const auto& config = *std::get_if<0>(&files.resolver);
  const bool absolute = name.size() != node.size();
  name_plan plan;
  plan.name = name;
  plan.steps = search_steps(name, absolute, *config);
  if (const auto reason = judge_search(plan, absolute, files)) return *reason;
  plan.name = plan.steps.front().name;
  const std::size_t dns = *std::get_if<std::size_t>(&place);
  plan.nothing_after_dns = dns + 1 == services.size();
  plan.goes_past_silence = goes_on(services[dns], lookup_status::unavailable) &&
                           goes_on(services[dns], lookup_status::try_again);
  plan.config = config;
  return plan;
}

const char* to_text(decline_reason reason) {
  switch (reason) {
    case decline_reason::bad_name: return "bad name";
    case decline_reason::local_name: return "local name";
    case decline_reason::in_hosts_file: return "in /etc/hosts";
    case decline_reason::search_list: return "search list";
    case decline_reason::host_aliases: return "HOSTALIASES";
    case decline_reason::nsswitch_module: return "nsswitch module";
    case decline_reason::nsswitch_odd: return "nsswitch not understood";
    case decline_reason::resolver_option: return "resolver option";
    case decline_reason::nameserver_odd: return "nameserver with a scope";
    case decline_reason::gai_conf: return "gai.conf";
    case decline_reason::file_unreadable: break;
  }
  return "unreadable file";
}

}  // namespace happy
