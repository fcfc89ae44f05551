// Router advertisements as the kernel tells them to whoever listens, for as long as somebody does: it keeps none.
#pragma once

#include "resolver/guarded_socket.h"
#include "resolver/prefix_table.h"

namespace happy {

// By a socket of its own and not by libhappy-netlink.so: it is the hidden thread that listens, and a program that
// forks while that thread is inside dlopen() has a child whose loader is locked for good.
//
// Spec:     RFC 8781; V6ONLY-3
class pref64_listener {
 public:
  // False where that cannot be had. Needs no privilege.
  //
  // Context:  the descriptor is out of the program's way and close-on-exec; does not block, does not allocate.
  bool open();

  bool is_open() const { return socket_.valid(); }

  // Takes in what routers have said since. What they said and the kernel had no room for is lost: they say it again.
  //
  // Context:  two system calls where they were silent.
  void hear(prefix_table& table, time_point now);

  void close() { socket_.reset(); }

 private:
  guarded_socket socket_;
};

}  // namespace happy
