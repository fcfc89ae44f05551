#include "shim/hints.h"

#include <linux/capability.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "shim/base/endpoint.h"
#include "shim/base/guards.h"
#include "shim/base/raw_syscall.h"
#include "shim/process.h"

namespace happy {
namespace {

// A name with a dozen addresses takes a dozen slots; a parent connects soon after its child has looked
// up, so a few names' worth is enough.
constexpr std::uint32_t slot_count = 64;

// A slot is being written while `version` is odd.
struct slot {
  std::atomic<std::uint32_t> version;
  std::uint32_t age;  // of the table when it was written; the highest is the latest
  endpoint where;     // its port is not used
  int af;
  char name[HAPPY_MAX_NAME];
};

struct hint_table {
  std::atomic<std::uint32_t> age;
  slot slots[slot_count];
};

struct credentials {
  std::uint32_t uid[3];
  std::uint32_t gid[3];
  __user_cap_data_struct capabilities[2];
};

constinit std::atomic<hint_table*> table{nullptr};
constinit credentials made_under{};

credentials read_credentials() {
  credentials c{};
  raw_syscall(SYS_getresuid, reinterpret_cast<long>(&c.uid[0]), reinterpret_cast<long>(&c.uid[1]),
              reinterpret_cast<long>(&c.uid[2]));
  raw_syscall(SYS_getresgid, reinterpret_cast<long>(&c.gid[0]), reinterpret_cast<long>(&c.gid[1]),
              reinterpret_cast<long>(&c.gid[2]));
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  raw_syscall(SYS_capget, reinterpret_cast<long>(&header), reinterpret_cast<long>(c.capabilities));
  return c;
}

// The table, if the process still is who made it.
hint_table* trusted_table() {
  hint_table* t = table.load(std::memory_order_acquire);
  if (t == nullptr) return nullptr;
  const credentials now = read_credentials();
  return std::memcmp(&now, &made_under, sizeof now) == 0 ? t : nullptr;
}

// Copies a slot out whole; false if a writer was in it, or what it holds is no hint.
bool read_slot(slot& from, happy_hint& out, endpoint& where, std::uint32_t& age) {
  const std::uint32_t before = from.version.load(std::memory_order_acquire);
  if (before == 0 || before % 2 != 0) return false;
  slot copy_of{};
  copy_of.age = from.age;
  copy_of.where = from.where;
  copy_of.af = from.af;
  std::memcpy(copy_of.name, from.name, sizeof copy_of.name);
  // An update that changes nothing, because it keeps the reads above it where they are.
  if (from.version.fetch_add(0, std::memory_order_acq_rel) != before) return false;

  if (copy_of.name[0] == 0 || std::memchr(copy_of.name, 0, sizeof copy_of.name) == nullptr)
    return false;
  if (copy_of.af != AF_UNSPEC && copy_of.af != AF_INET && copy_of.af != AF_INET6) return false;
  std::memcpy(out.name, copy_of.name, sizeof out.name);
  out.af = copy_of.af;
  where = copy_of.where;
  age = copy_of.age;
  return true;
}

bool write_slot(slot& to, const happy_hint& hint, const endpoint& where, std::uint32_t age) {
  std::uint32_t version = to.version.load(std::memory_order_relaxed);
  if (version % 2 != 0 || !to.version.compare_exchange_strong(version, version + 1)) return false;
  to.age = age;
  to.where = where;
  to.af = hint.af;
  std::memcpy(to.name, hint.name, sizeof to.name);
  to.version.store(version + 2, std::memory_order_release);
  return true;
}

}  // namespace

bool has_hints() { return table.load(std::memory_order_relaxed) != nullptr; }

void prepare_hints() {
  if (has_hints()) return;
  const long memory = raw_syscall(SYS_mmap, 0, sizeof(hint_table), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory < 0 && memory > -4096) return;
  made_under = read_credentials();
  table.store(reinterpret_cast<hint_table*>(memory), std::memory_order_release);
  watch_connects();
}

void publish_hint(const happy_hint* hint) {
  hint_table* t = trusted_table();
  endpoint where;
  if (t == nullptr ||
      !from_sockaddr(reinterpret_cast<const sockaddr*>(&hint->to), sizeof hint->to, where)) {
    return;
  }
  const std::uint32_t age = t->age.fetch_add(1, std::memory_order_relaxed) + 1;
  write_slot(t->slots[age % slot_count], *hint, where, age);
}

int find_hint(const sockaddr* to, socklen_t length, happy_hint* found) {
  if (!has_hints()) return 0;
  endpoint wanted;
  hint_table* t = trusted_table();
  if (t == nullptr || !from_sockaddr(to, length, wanted)) return 0;
  std::uint32_t best = 0;
  for (slot& s : t->slots) {
    happy_hint hint;
    endpoint where;
    std::uint32_t age = 0;
    if (!read_slot(s, hint, where, age) || where.address != wanted.address || age < best) continue;
    best = age;
    *found = hint;
  }
  return best != 0 ? 1 : 0;
}

}  // namespace happy
