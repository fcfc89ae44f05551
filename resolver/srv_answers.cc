#include "resolver/srv_answers.h"

#include <algorithm>

#include "resolver/text_scan.h"

namespace happy {
namespace {

bool names(const service_record& r, std::string_view name) {
  if (!name.empty() && name.back() == '.') name.remove_suffix(1);
  return equal_ignoring_case(r.target, name);
}

bool any_names(const std::vector<service_record>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const service_record& r) { return names(r, name); });
}

}  // namespace

void srv_answers::forget_old(time_point now) {
  std::erase_if(answers_, [&](const seen& s) { return now - s.since > srv_answer_lifetime; });
}

void srv_answers::note(std::vector<service_record> records, time_point now) {
  forget_old(now);
  std::erase_if(records, [](const service_record& r) { return !r.usable; });
  if (records.empty()) return;
  if (answers_.size() == max_srv_answers) answers_.pop_front();
  answers_.push_back({.left = records, .all = records, .since = now});
}

bool srv_answers::is_target(std::string_view name, time_point now) const {
  return std::any_of(answers_.begin(), answers_.end(), [&](const seen& s) {
    return now - s.since <= srv_answer_lifetime && any_names(s.all, name);
  });
}

bool srv_answers::is_target(std::string_view name, time_point now, std::uint16_t port) const {
  return std::any_of(answers_.begin(), answers_.end(), [&](const seen& s) {
    return now - s.since <= srv_answer_lifetime &&
           std::any_of(s.all.begin(), s.all.end(),
                       [&](const service_record& r) { return r.port == port && names(r, name); });
  });
}

srv_companions srv_answers::follow(std::string_view name, std::uint32_t& random, time_point now,
                                   std::uint16_t port) {
  forget_old(now);
  const auto is_meant = [&](const service_record& r) {
    return names(r, name) && (port == 0 || r.port == port);
  };
  const auto latest = std::find_if(answers_.rbegin(), answers_.rend(), [&](const seen& s) {
    return std::any_of(s.left.begin(), s.left.end(), is_meant);
  });
  if (latest == answers_.rend()) return {};
  std::vector<service_record>& left = latest->left;
  order_srv(left, random);
  const service_record own = *std::find_if(left.begin(), left.end(), is_meant);
  srv_companions found{.records = {own}, .port = own.port};
  // Its records of other priorities stay: those groups are still to come.
  std::erase_if(left,
                [&](const service_record& r) { return is_meant(r) && r.priority == own.priority; });
  for (const service_record& r : left) {
    if (r.priority == own.priority) found.records.push_back(r);
  }
  if (found.records.size() == 1) found.records.clear();
  return found;
}

}  // namespace happy
