#include "resolver/network.h"

#include <dlfcn.h>

#include <atomic>

#include "resolver/trace.h"

namespace happy {
namespace {

constexpr char library_name[] = "libhappy-netlink.so";

constinit const happy_host* host = nullptr;
constinit happy_netlink library_table{};
constinit std::atomic<const happy_netlink*> table{nullptr};
constinit std::atomic<bool> tried{false};

void trace_refusal(const char* why) {
  if (!trace_on()) return;
  json_line line = trace_line("netlink_refused", 0);
  line.text("reason", why);
  emit(line);
}

}  // namespace

void set_network_host(const happy_host* h) { host = h; }

void set_network_table(const happy_netlink* t) { table.store(t, std::memory_order_release); }

const happy_netlink* loaded_network() { return table.load(std::memory_order_acquire); }

const happy_netlink* load_network() {
  if (const happy_netlink* known = loaded_network()) return known;
  // Who comes second while it is being loaded does without it this once.
  if (host == nullptr || tried.exchange(true)) return nullptr;
  const char* why = "";
  void* library = host->load_library(library_name, &why);
  if (library == nullptr) {
    trace_refusal(why);
    return nullptr;
  }
  auto* start =
      reinterpret_cast<decltype(&happy_netlink_start)>(dlsym(library, "happy_netlink_start"));
  if (start == nullptr || start(&library_table) != 0 ||
      library_table.abi_version != HAPPY_NETLINK_ABI_VERSION) {
    trace_refusal("of another version");
    return nullptr;
  }
  set_network_table(&library_table);
  return &library_table;
}

happy_netlink_address to_netlink(const address& a) {
  happy_netlink_address out{};
  out.family = to_af(a.family);
  std::memcpy(out.bytes, a.bytes.data(), a.bytes.size());
  out.interface = a.scope;
  return out;
}

address from_netlink(const happy_netlink_address& a) {
  address out;
  out.family = a.family == AF_INET ? family::ipv4 : family::ipv6;
  std::memcpy(out.bytes.data(), a.bytes, out.bytes.size());
  const bool link_local =
      out.family == family::ipv6 && a.bytes[0] == 0xfe && (a.bytes[1] & 0xc0) == 0x80;
  out.scope = link_local ? a.interface : 0;
  return out;
}

}  // namespace happy
