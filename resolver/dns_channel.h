// A c-ares channel with its sockets, and the few idle ones that are kept: making one costs more than all
// the rest of a lookup.
#pragma once

#include <cstdint>
#include <memory>

#include "resolver/dns_sockets.h"
#include "shim/base/endpoint.h"
#include "shim/base/time.h"

namespace happy {

// Two for each of eight lookups at a time. An idle one holds no descriptor, but 75 KB of memory.
inline constexpr std::size_t max_idle_channels = 16;

// For one query at a time.
class dns_channel {
 public:
  // What glibc advertises; larger replies come over TCP.
  static constexpr int edns_payload = 1200;

  // What c-ares does not let one change later.
  struct options {
    bool edns0 = false;
    bool use_tcp = false;
    duration timeout{};

    friend bool operator==(const options&, const options&) = default;
  };

  // An idle one or a new one, that asks `nameserver` once; nullptr when there is no memory.
  static std::unique_ptr<dns_channel> open(const endpoint& nameserver, const options& o);

  // Keeps the channel for another query if this one went as nearly all go: one packet sent, one reply.
  // Whatever else c-ares may remember (EDNS refused, nameservers that failed) ends with the channel.
  static void close(std::unique_ptr<dns_channel> channel);

  dns_channel(const dns_channel&) = delete;
  dns_channel& operator=(const dns_channel&) = delete;
  ~dns_channel();

  ares_channel get() const { return channel_; }
  dns_sockets& sockets() { return sockets_; }
  const dns_sockets& sockets() const { return sockets_; }

 private:
  explicit dns_channel(const options& o) : options_(o) {}
  static std::unique_ptr<dns_channel> take_idle(const options& o);
  static std::unique_ptr<dns_channel> make(const options& o);
  bool set_server(const endpoint& nameserver);

  const options options_;
  dns_sockets sockets_;
  ares_channel channel_ = nullptr;  // refers to sockets_; destroyed first
};

// Whether there are any. From 1.20 on c-ares learns from one query for the next (which nameserver fails, how long to
// wait, the answer itself), and glibc does not.
bool keeps_idle_channels();

// How many there are: for tests.
int idle_channel_count();

// There are none from then on: for tests.
//
// Context:  any thread; frees memory.
void drop_idle_channels();

// What a forked child does by itself: the parent's idle channels are not for it. They stay in its memory, which is the
// parent's until somebody writes there: a fork() in a signal handler may have interrupted malloc().
//
// Context:  signal-safe.
void forget_idle_channels();

}  // namespace happy
