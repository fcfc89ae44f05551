#include "resolver/nsswitch.h"

#include <algorithm>

#include "resolver/text_scan.h"

namespace happy {
namespace {

constexpr std::string_view default_services = "files dns";

void skip_spaces(std::string_view& rest) {
  while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
}

std::string_view take_until(std::string_view& rest, std::string_view ends) {
  std::size_t end = 0;
  while (end < rest.size() && !is_space(rest[end]) &&
         ends.find(rest[end]) == std::string_view::npos)
    ++end;
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end);
  return word;
}

bool take_char(std::string_view& rest, char c) {
  if (rest.empty() || rest.front() != c) return false;
  rest.remove_prefix(1);
  return true;
}

std::optional<lookup_status> status_named(std::string_view word) {
  if (equal_ignoring_case(word, "SUCCESS")) return lookup_status::success;
  if (equal_ignoring_case(word, "NOTFOUND")) return lookup_status::not_found;
  if (equal_ignoring_case(word, "UNAVAIL")) return lookup_status::unavailable;
  if (equal_ignoring_case(word, "TRYAGAIN")) return lookup_status::try_again;
  return std::nullopt;
}

std::optional<lookup_action> action_named(std::string_view word) {
  if (equal_ignoring_case(word, "RETURN")) return lookup_action::stop;
  if (equal_ignoring_case(word, "CONTINUE")) return lookup_action::go_on;
  if (equal_ignoring_case(word, "MERGE")) return lookup_action::merge;
  return std::nullopt;
}

// One "NOTFOUND=return", or with '!' for every status but that one.
bool take_criterion(std::string_view& rest, name_service& service) {
  const bool all_others = take_char(rest, '!');
  const auto status = status_named(take_until(rest, "=]"));
  skip_spaces(rest);
  if (!status || !take_char(rest, '=')) return false;
  skip_spaces(rest);
  const auto action = action_named(take_until(rest, "=]"));
  if (!action) return false;
  const lookup_action kept = service.on(*status);
  if (all_others) service.actions.fill(*action);
  service.actions[static_cast<std::size_t>(*status)] = all_others ? kept : *action;
  skip_spaces(rest);
  return true;
}

// "[...]" behind a module, at least one criterion in it.
bool take_criteria(std::string_view& rest, name_service& service) {
  skip_spaces(rest);
  if (!take_char(rest, '[')) return true;
  skip_spaces(rest);
  do {
    if (!take_criterion(rest, service)) return false;
  } while (!take_char(rest, ']'));
  return true;
}

std::optional<std::vector<name_service>> parse_services(std::string_view rest) {
  std::vector<name_service> services;
  for (;;) {
    skip_spaces(rest);
    name_service next;
    next.module = take_until(rest, "[");
    if (next.module.empty()) return services;
    if (services.size() == max_name_services || !take_criteria(rest, next)) return std::nullopt;
    services.push_back(std::move(next));
  }
}

// What follows "hosts" and any mixture of blanks and colons; nullopt for other lines.
std::optional<std::string_view> hosts_line(std::string_view line) {
  skip_spaces(line);
  if (take_until(line, ":") != "hosts" || line.empty()) return std::nullopt;
  while (!line.empty() && (is_space(line.front()) || line.front() == ':')) line.remove_prefix(1);
  return line;
}

}  // namespace

std::optional<std::vector<name_service>> parse_nsswitch(std::string_view text) {
  std::string_view services = default_services;
  while (!text.empty()) {
    const bool terminated = text.find('\n') != std::string_view::npos;
    const auto found = hosts_line(take_line(text));
    if (!found) continue;
    // glibc 2.36 does not see a last line without its newline, others do.
    if (!terminated) return std::nullopt;
    services = *found;  // the last one counts
  }
  return parse_services(services);
}

}  // namespace happy
