#include "resolver/intent.h"

#include <algorithm>

#include "resolver/text_scan.h"

namespace happy {
namespace {

bool holds(const intent& i, const address& a) {
  return std::find(i.handed.begin(), i.handed.end(), a) != i.handed.end() || holds(i.candidates, a);
}

bool is_fresh(const intent& i, time_point now) { return now - i.made <= intent_lifetime; }

void copy(const intent& from, const endpoint& named, known_destination& out) {
  out.port = from.port_meant_by(named);
  out.id = from.id;
  out.by_srv = from.by_srv;
  out.as_mapped = from.as_mapped;
  out.candidates.clear();
  for (const candidate& c : from.candidates_at(out.port)) out.candidates.push_back(c);
}

// Threads that disagree about an address have only their common ground raced.
void intersect(known_destination& out, const endpoint& named, const intent& with) {
  const std::uint16_t port = with.port_meant_by(named);
  for (std::size_t i = out.candidates.size(); i-- > 0;) {
    if (!holds(with.candidates_at(port), out.candidates[i])) out.candidates.erase(i);
  }
  out.id = 0;
}

}  // namespace

std::uint16_t intent::port_meant_by(const endpoint& named) const {
  const bool is_own =
      by_srv && std::any_of(candidates.begin(), candidates.end(), [&](const candidate& c) {
        return c.destination == named.address && c.port == named.port;
      });
  return is_own ? service_port : named.port;
}

void intent_table::add(intent made) {
  if (intents_.size() == max_intents) intents_.pop_front();
  intents_.push_back(std::move(made));
}

bool intent_table::find(const endpoint& named, pid_t thread, time_point now,
                        known_destination& out) const {
  bool found = false;
  for (auto i = intents_.rbegin(); i != intents_.rend(); ++i) {
    if (!is_fresh(*i, now)) break;  // all before it are older
    if (!holds(*i, named.address)) continue;
    if (i->thread == thread) {
      copy(*i, named, out);
      return true;
    }
    if (!found) {
      copy(*i, named, out);
    } else {
      intersect(out, named, *i);
    }
    found = true;
  }
  return found;
}

std::uint16_t intent_table::seen_port(const char* name) const {
  const auto i = std::find_if(intents_.rbegin(), intents_.rend(), [name](const intent& x) {
    return x.seen_port != 0 && equal_ignoring_case(x.name, name);
  });
  return i == intents_.rend() ? 0 : i->seen_port;
}

intent* intent_table::by_id(std::uint64_t id) {
  if (id == 0) return nullptr;
  // From the latest: nearly always it is that one.
  const auto i =
      std::find_if(intents_.rbegin(), intents_.rend(), [&](const intent& x) { return x.id == id; });
  return i == intents_.rend() ? nullptr : &*i;
}

void intent_table::record_failures(intent& raced, std::span<const failure> all,
                                   const endpoint& told, pid_t thread, time_point now) {
  raced.failures.clear();
  for (const failure& f : all) {
    if (f.where == told) continue;
    if (raced.failures.size() == raced.failures.capacity()) break;
    raced.failures.push_back(f);
    any_failures_ = true;
  }
  raced.failed_thread = thread;
  raced.failures_until = now + failure_lifetime;
}

int intent_table::take_failure(const endpoint& where, pid_t thread, time_point now) {
  if (!any_failures_) return 0;
  for (intent& i : intents_) {
    if (i.failed_thread != thread || now >= i.failures_until) continue;
    const auto f = std::find_if(i.failures.begin(), i.failures.end(),
                                [&](const failure& x) { return x.where == where; });
    if (f == i.failures.end()) continue;
    const int error = f->error;
    i.failures.erase(f);
    return error;
  }
  return 0;
}

void intent_table::forget_failures(pid_t thread) {
  if (!any_failures_) return;
  any_failures_ = false;
  for (intent& i : intents_) {
    if (i.failed_thread == thread) i.failures.clear();
    if (!i.failures.empty()) any_failures_ = true;
  }
}

}  // namespace happy
