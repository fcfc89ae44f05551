#include "resolver/dns_channel.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <iterator>

namespace happy {
namespace {

constexpr int options_given =
    ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
    ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT | ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
    ARES_OPT_SORTLIST | ARES_OPT_NOROTATE | ARES_OPT_SOCK_STATE_CB;

// Every option that c-ares would otherwise look for in files and in the environment.
ares_options options_for(const dns_channel::options& o) {
  static char lookups[] = "b";
  ares_options options{};
  options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_NOCHECKRESP |
                  (o.edns0 ? ARES_FLAG_EDNS : 0) | (o.use_tcp ? ARES_FLAG_USEVC : 0);
  options.ednspsz = dns_channel::edns_payload;
  options.timeout = static_cast<int>(std::chrono::ceil<milliseconds>(o.timeout).count());
  options.tries = 1;  // who is asked again, and when, is for nameserver_turns to say
  options.lookups = lookups;
  return options;
}

// No lock: a fork in the middle of anything leaves every slot empty or whole.
constinit std::atomic<dns_channel*> idle_channels[max_idle_channels]{};

}  // namespace

dns_channel::~dns_channel() {
  sockets_.begin_turn();
  if (channel_ != nullptr) ares_destroy(channel_);
}

std::unique_ptr<dns_channel> dns_channel::take_idle(const options& o) {
  for (std::atomic<dns_channel*>& slot : idle_channels) {
    std::unique_ptr<dns_channel> idle(slot.exchange(nullptr, std::memory_order_acquire));
    // Others were made before the configuration changed, and end here.
    if (idle != nullptr && idle->options_ == o) return idle;
  }
  return nullptr;
}

std::unique_ptr<dns_channel> dns_channel::make(const options& o) {
  // No guarded static, as above: a second call counts, and does nothing else.
  static constinit std::atomic<bool> initialised{false};
  if (!initialised.load(std::memory_order_acquire)) {
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) return nullptr;
    initialised.store(true, std::memory_order_release);
  }
  std::unique_ptr<dns_channel> made(new dns_channel(o));
  ares_options options = options_for(o);
  options.sock_state_cb = dns_sockets::watch;
  options.sock_state_cb_data = &made->sockets_;
  if (ares_init_options(&made->channel_, &options, options_given) != ARES_SUCCESS) return nullptr;
  made->sockets_.attach(made->channel_);
  return made;
}

bool dns_channel::set_server(const endpoint& nameserver) {
  ares_addr_port_node node{};
  node.family = to_af(nameserver.address.family);
  node.udp_port = nameserver.port;
  node.tcp_port = nameserver.port;
  std::memcpy(&node.addr, nameserver.address.bytes.data(),
              nameserver.address.family == family::ipv4 ? 4 : 16);
  return ares_set_servers_ports(channel_, &node) == ARES_SUCCESS;
}

std::unique_ptr<dns_channel> dns_channel::open(const endpoint& nameserver, const options& o) {
  std::unique_ptr<dns_channel> channel = take_idle(o);
  if (channel == nullptr) channel = make(o);
  if (channel == nullptr || !channel->set_server(nameserver)) return nullptr;
  channel->sockets_.begin_query(nameserver.address.scope);
  return channel;
}

void dns_channel::close(std::unique_ptr<dns_channel> channel) {
  const dns_sockets& sockets = channel->sockets_;
  if (!sockets.none_open() || sockets.packets_sent() != 1 || !keeps_idle_channels()) return;
  for (std::atomic<dns_channel*>& slot : idle_channels) {
    dns_channel* nobody = nullptr;
    if (slot.compare_exchange_strong(nobody, channel.get(), std::memory_order_release,
                                     std::memory_order_relaxed)) {
      static_cast<void>(channel.release());  // to the slot
      return;
    }
  }
}

bool keeps_idle_channels() {
  constexpr int first_that_learns = 0x011400;
  // No guarded static: a child forked meanwhile would wait for its guard for ever. Registered twice by two
  // threads, the handler finds nothing the second time.
  static constinit std::atomic<int> kept{-1};
  if (const int known = kept.load(std::memory_order_acquire); known >= 0) return known != 0;
  int version = 0;
  ares_version(&version);
  const bool may =
      version < first_that_learns && pthread_atfork(nullptr, nullptr, forget_idle_channels) == 0;
  kept.store(may ? 1 : 0, std::memory_order_release);
  return may;
}

int idle_channel_count() {
  return static_cast<int>(std::count_if(std::begin(idle_channels), std::end(idle_channels),
                                        [](const std::atomic<dns_channel*>& slot) {
                                          return slot.load(std::memory_order_relaxed) != nullptr;
                                        }));
}

void forget_idle_channels() {
  for (std::atomic<dns_channel*>& slot : idle_channels)
    slot.store(nullptr, std::memory_order_relaxed);
}

void drop_idle_channels() {
  for (std::atomic<dns_channel*>& slot : idle_channels)
    delete slot.exchange(nullptr, std::memory_order_acquire);
}

}  // namespace happy
