// A resolution on virtual time: what it asks for, what it is answered, and what it does then.
#pragma once

#include <string>
#include <vector>

#include "resolver/resolution.h"
#include "tests/support/addresses.h"
#include "tests/support/virtual_time.h"

namespace happy::test {

class resolution_script {
 public:
  explicit resolution_script(const resolution::settings& s) : machine(s) {}

  // The queries that are sent now, as "AAAA a.test".
  std::vector<std::string> sent(int now = 0) {
    using kind = resolution::action::kind;
    std::vector<std::string> list;
    for (auto next = machine.poll(at(now)); next.what == kind::query; next = machine.poll(at(now)))
      list.push_back(type_name(machine.type_of(next.query)) + " " + machine.name_of(next.query));
    return list;
  }

  void address_answer(const std::string& name, record_type type,
                      const std::vector<std::string>& found, int now,
                      answer_kind negative = answer_kind::no_data) {
    answer a;
    a.type = type;
    a.kind = found.empty() ? negative : answer_kind::positive;
    for (const std::string& text : found) a.addresses.push_back(ip(text));
    machine.handle(machine.find(name, type).value(), a, at(now));
  }

  void service_answer(const std::string& name, record_type type,
                      const std::vector<service_record>& found, int now, answer_kind negative) {
    answer a;
    a.type = type;
    a.kind = found.empty() ? negative : answer_kind::positive;
    a.services = found;
    machine.handle(machine.find(name, type).value(), a, at(now));
  }

  // "finished: REASON", "query", "wait until MS" or, for ever, "wait".
  std::string state(int now) {
    using kind = resolution::action::kind;
    const auto next = machine.poll(at(now));
    if (next.what == kind::finished) return std::string("finished: ") + to_text(next.reason);
    if (next.what == kind::query) return "query";
    if (next.until == never) return "wait";
    const auto until = next.until.time_since_epoch();
    return "wait until " + std::to_string(std::chrono::duration_cast<milliseconds>(until).count());
  }

  resolution machine;

 private:
  static std::string type_name(record_type type) {
    switch (type) {
      case record_type::srv: return "SRV";
      case record_type::https: return "HTTPS";
      case record_type::aaaa: return "AAAA";
      default: return "A";
    }
  }
};

}  // namespace happy::test
