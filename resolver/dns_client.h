// One DNS query as descriptors and deadlines: c-ares behind an interface for the caller's own loop.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>

#include "resolver/answer.h"
#include "resolver/resolv_conf.h"
#include "shim/base/bounded_vector.h"
#include "shim/base/result.h"
#include "shim/base/time.h"

namespace happy {

// UDP and, after a truncated reply, TCP.
inline constexpr std::size_t max_channel_fds = 2;
inline constexpr std::size_t max_query_fds = max_nameservers * max_channel_fds;

// What becomes of a reply: it is read, or kept for who reads it himself, whatever the record type.
enum class query_reading : std::uint8_t { meaning, packet };

// One name, one record type, asked of each nameserver on a c-ares channel and so a source port of its own.
// Nothing here blocks. Destroying it at any moment closes its sockets.
//
// The limits are glibc's: `attempts` rounds over the nameservers, which end when glibc's do. What the kernel
// or the nameserver refuses (ICMP, SERVFAIL, NOTIMP, REFUSED) goes on to the next one at once. Unlike in
// glibc, IPv6 nameservers come first and those that lately were silent last; a silent one is overtaken
// (nameserver_turns); and where resolv.conf wants EDNS, what is silent to it is asked without.
//
// One that start() did not make can only be assigned to and destroyed.
//
// Context:  one thread at a time.
class dns_query {
 public:
  dns_query();
  ~dns_query();
  dns_query(dns_query&&) noexcept;
  dns_query& operator=(dns_query&&) noexcept;

  // Sends the first packet. An errno if nothing could be started; that no nameserver could be sent
  // to is an answer. `port` is for tests.
  static result<dns_query> start(const std::string& name, record_type type,
                                 const resolver_config& config, std::uint16_t port = dns_port,
                                 query_reading reading = query_reading::meaning);

  // What to poll for now; changes with every call of process or process_timeouts.
  bounded_vector<pollfd, max_query_fds> poll_set() const;

  // The sockets leave the program's way, for a query that goes on after the program's call has ended.
  // False if there is no room: the query is of no more use.
  bool hide();

  // The query is over, though not freed: no answer will come. Does not free memory.
  void close_sockets();

  // How long until process_timeouts() has something to do; nullopt: nothing is outstanding.
  // Relative, because c-ares reads a clock of its own.
  std::optional<duration> until_timeout() const;

  // What poll() said of a descriptor from poll_set(); others are ignored.
  void process(int fd, short revents);
  void process_timeouts();

  // The answer, once: nullopt before it is there and after it was taken.
  std::optional<answer> take_answer();

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace happy
