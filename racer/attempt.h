// One hidden connection attempt: a non-blocking connect() on a socket like the program's own.
#pragma once

#include <netinet/tcp.h>

#include <cstdint>

#include "racer/socket_options.h"
#include "resolver/guarded_socket.h"
#include "shim/base/endpoint.h"
#include "shim/base/time.h"

namespace happy {

// The program's socket, as attempts need to know it.
struct original_socket {
  int fd = -1;  // a dup of our own
  family socket_family = family::ipv6;
  int protocol = 0;
  bool bound = false;  // to an explicit local address: attempts use the same
  address local{};
  early_options early{};
};

// Whether both sockets are of one network namespace: the program may have moved since it made its own.
bool same_network(int a, int b);

struct started_attempt {
  guarded_socket socket;
  int error = 0;                // of connect(): 0 connected at once, EINPROGRESS, or why it failed
  bool reached_network = true;  // a packet left this host
  options_digest options = 0;   // of the original, as copied
};

// Context:  worker thread; does not block; the engine's lock may be held.
started_attempt start_attempt(const original_socket& original, const endpoint& to);

// How a hidden attempt stands.
enum class attempt_state : std::uint8_t {
  pending,    // still connecting
  troubled,   // still connecting; an ICMP error came
  connected,  // the handshake is complete
  failed,     // it is over
};

struct attempt_report {
  attempt_state state = attempt_state::pending;
  int error = 0;  // of troubled and failed
};

// Reads (and clears) SO_ERROR of a socket that poll() has reported. POLLERR alone can mean a socket
// that is still connecting. A socket that the program has closed has failed with EBADF.
attempt_report examine_attempt(const guarded_socket& socket);

// Whether its handshake has failed: the error is still there to be read. False if the program has closed it.
bool has_ended(const guarded_socket& socket);

// The state (TCP_SYN_SENT ...) of the socket behind `fd`, or no_tcp_state with errno: it is none of TCP's.
inline constexpr int no_tcp_state = -1;
int tcp_state(int fd);

// Whether that is one of the handshake.
constexpr bool is_handshake(int state) { return state == TCP_SYN_SENT || state == TCP_SYN_RECV; }

// Whether the handshake of the socket behind `fd` is under way. Takes nothing away from the program, as
// reading SO_ERROR would.
bool is_connecting(int fd);

// Whether it has succeeded, whatever became of the connection since.
bool has_connected(int fd);

// Whether the program has taken its handshake back, by shutdown() or by connect() to AF_UNSPEC. connect() would begin anew
// on such a socket, where one of which the handshake has failed tells why.
bool was_taken_back(int fd);

// From here on nothing that comes from the network reaches the socket: its handshake cannot end, neither well
// nor by a reset. False: the filter cannot be had.
bool drop_what_arrives(int fd);
void take_what_arrives(int fd);

// What the kernel says of an endpoint that cannot be reached, as against what it says of a wrong call, or
// after the program's own shutdown() (ECONNRESET: a refused handshake is ECONNREFUSED).
bool is_endpoint_failure(int error);

}  // namespace happy
