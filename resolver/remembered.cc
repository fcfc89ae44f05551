#include "resolver/remembered.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

#include "resolver/attachment.h"
#include "resolver/history_file.h"
#include "resolver/network.h"
#include "resolver/sole_visit.h"
#include "shim/base/guards.h"

namespace happy {
namespace {

// For who holds `busy`.
struct memory {
  history_file file;
  history known{duration(0)};
  std::uint64_t network = 0;
  time_point network_asked = time_point::min();
  time_point file_asked = time_point::min();
  happy_netlink_network own{};  // for the ages of this host's addresses
  time_point own_asked = time_point::min();
  bool own_known = false;
  history_image image{};
  char scratch[8192] = {};  // of /proc/net/arp: a hundred neighbours
};

constinit std::atomic<bool> kept{false};
constinit std::atomic<bool> any_known{false};  // of any network
constinit std::atomic<bool> moved{false};
constinit std::atomic<bool> busy{false};

memory& the_memory() {
  alignas(memory) static unsigned char storage[sizeof(memory)];
  static memory* made = new (storage) memory;  // the first call comes from keep_history()
  return *made;
}

bool is_stale(time_point asked, time_point now) {
  return asked == time_point::min() || now < asked || now - asked >= history_freshness;
}

void note_what_is_known(const memory& m) {
  const auto image = m.known.image();
  const bool any = std::any_of(image.begin(), image.end(), [](const history_record& r) {
    return r.kind != history_kind::none;
  });
  any_known.store(any, std::memory_order_relaxed);
}

void forget_if_moved(memory& m) {
  if (!moved.exchange(false, std::memory_order_acq_rel)) return;
  m.network = 0;
  m.network_asked = m.file_asked = m.own_asked = time_point::min();
}

void refresh_file(memory& m, time_point now) {
  if (!is_stale(m.file_asked, now)) return;
  m.file_asked = now;
  if (!m.file.has_changed()) return;
  m.known.clear();
  if (m.file.read(m.image)) m.known.load(m.image.records, now);
  note_what_is_known(m);
}

void refresh_network(memory& m, time_point now) {
  if (!is_stale(m.network_asked, now)) return;
  m.network_asked = now;
  m.network = recognise_network(m.scratch);
}

// How long this host has had the address; -1: not said.
std::int64_t age_of(memory& m, const happy_netlink& kernel, const address& source, time_point now) {
  if (is_stale(m.own_asked, now)) {
    m.own_asked = now;
    m.own_known = kernel.read_network(&m.own) == 0;
  }
  if (!m.own_known) return -1;
  for (std::uint32_t i = 0; i < m.own.address_count; ++i) {
    if (from_netlink(m.own.addresses[i].where).bytes == source.bytes &&
        from_netlink(m.own.addresses[i].where).family == source.family) {
      return m.own.addresses[i].age_ms;
    }
  }
  return -1;
}

// SORT-2. What is older than the source address was learnt on another network.
bool recall_path(memory& m, const happy_netlink& kernel, candidate& c, time_point now) {
  const happy_netlink_address to = to_netlink(c.destination);
  const happy_netlink_address from = to_netlink(c.source);
  happy_netlink_path path{};
  if (kernel.find_path(&to, &from, &path) != 0 || path.rtt_us == 0) return false;
  const std::int64_t age = age_of(m, kernel, c.source, now);
  if (age < 0 || path.age_ms > age) return false;
  c.rtt = std::chrono::microseconds(path.rtt_us);
  c.rtt_variance = std::chrono::microseconds(path.rtt_variance_us);
  c.rtt_age = milliseconds(path.age_ms);
  return true;
}

int recall_paths(memory& m, std::span<candidate> list, time_point now) {
  const happy_netlink* kernel = list.size() > 1 ? load_network() : nullptr;
  if (kernel == nullptr) return 0;
  int found = 0;
  for (candidate& c : list.first(std::min(list.size(), max_path_questions))) {
    if (c.has_source && c.rtt == duration(0)) found += recall_path(m, *kernel, c, now) ? 1 : 0;
  }
  return found;
}

}  // namespace

void keep_history(const char* folder, duration retry) {
  memory& m = the_memory();
  m.known = history(retry);
  m.file_asked = m.network_asked = m.own_asked = time_point::min();
  kept.store(m.file.set_folder(folder), std::memory_order_release);
  any_known.store(false, std::memory_order_relaxed);
}

bool history_is_kept() { return kept.load(std::memory_order_acquire); }

recalled recall(std::span<candidate> list, std::string_view name, recall_from where,
                time_point now) {
  recalled found;
  if (!history_is_kept()) return found;
  const sole_visit h(busy);
  if (!h.mine()) return found;
  errno_saver keep;
  memory& m = the_memory();
  forget_if_moved(m);
  if (where == recall_from::all) refresh_file(m, now);
  if (!any_known.load(std::memory_order_relaxed)) return found;
  if (where == recall_from::all) refresh_network(m, now);
  if (!m.known.knows(m.network)) return found;
  const std::uint64_t hash = hash_of(name);
  for (candidate& c : list) {
    c.demoted = c.has_source && m.known.is_demoted(m.network, c.destination, hash, now);
    c.used = m.known.was_used(m.network, c.destination, now);
    found.demoted += c.demoted ? 1 : 0;
    found.used += c.used ? 1 : 0;
  }
  if (where == recall_from::all) found.paths = recall_paths(m, list, now);
  return found;
}

bool success_is_news(const address& a, std::uint64_t name) {
  if (!any_known.load(std::memory_order_relaxed)) return false;
  const sole_visit h(busy);
  if (!h.mine()) return false;
  const memory& m = the_memory();
  return m.network != 0 && m.known.would_clear(m.network, a, name);
}

void remember(std::span<const history_note> notes, time_point now) {
  if (!history_is_kept() || notes.empty()) return;
  const sole_visit h(busy);
  if (!h.mine()) return;
  errno_saver keep;
  memory& m = the_memory();
  forget_if_moved(m);
  refresh_network(m, now);
  if (m.network == 0) return;
  m.file.update(m.image, [&](history_image& image) {
    m.known.load(image.records, now);  // as others have left it
    std::uint64_t changed = 0;
    for (const history_note& n : notes) changed |= m.known.apply(m.network, n);
    std::copy(m.known.image().begin(), m.known.image().end(), image.records);
    return changed;
  });
  note_what_is_known(m);
}

void forget_network() { moved.store(true, std::memory_order_release); }

}  // namespace happy
