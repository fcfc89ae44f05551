// Makes a hidden attempt's socket like the program's own.
#pragma once

#include <cstdint>

#include "shim/base/endpoint.h"
#include "shim/base/result.h"

namespace happy {

// What only the time before connect() shows of the program's socket.
struct early_options {
  int maximum_segment = 0;  // TCP_MAXSEG as read then; later the kernel shows the path's
  int mark = -1;            // SO_MARK as the program set it, if the race has changed it since
  timeval send_timeout{};   // SO_SNDTIMEO as the program set it; the race may borrow the option
};

// Whether the socket carries something that matters and cannot be copied (a BPF filter, IP options,
// fast open): then there is no race.
bool has_uncopyable_options(int fd, family socket_family);

// Where it is said whether the program has ever set an option that means nothing to TCP: happy_pending. Until it is told,
// or where nobody tells, all are copied.
void watch_datagram_options(const std::uint32_t* set);

// All options that can be copied, in a number: sockets with the same number have the same.
//
// Context:  some fifty system calls; does not block.
using options_digest = std::uint64_t;
options_digest digest_options(int fd, family socket_family);

// Whether those agree that decide where packets go (mark, device ...), as far as they can be read.
bool have_same_route(int a, family family_of_a, int b, family family_of_b);

// Reads the options of `original` and sets on `attempt` those that differ from a fresh socket's,
// translated where the families differ (IPV6_TCLASS becomes IP_TOS ...).
//
// Returns:  the digest of what was read; ENOTSUP if an option that decides where packets go (mark, device,
//           transparent) could not be set.
// Context:  with the engine's lock; some fifty system calls, once a second a hundred; does not block.
result<options_digest> copy_options(int original, family original_family, int attempt,
                                    family attempt_family, const early_options& early);

// Copies what belongs to the open file: O_NONBLOCK, O_ASYNC, its owner and signal; ends the error
// queue that a hidden attempt has and the original does not. False if O_NONBLOCK and the like could not be
// set: the program would notice.
enum class socket_use : std::uint8_t {
  attempt,
  fresh
};  // fresh: nobody has set anything of that on it
[[nodiscard]] bool copy_file_state(int original, family original_family, int attempt,
                                   family attempt_family, socket_use use = socket_use::attempt);

// Lets ICMP errors wake a hidden attempt at once instead of at the next retransmission.
void want_soft_errors(int attempt, family f);

}  // namespace happy
