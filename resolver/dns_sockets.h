// The sockets of one c-ares channel: ours instead of its own, so that they are made by the real
// functions, hidden from the program, and checked before use.
#pragma once

#include <poll.h>

#include <cstddef>

#include "resolver/dns_client.h"
#include "resolver/guarded_socket.h"
#include "shim/base/bounded_vector.h"

// Version 1.34 discourages what both it and 1.18 have.
#define CARES_NO_DEPRECATED
#include <ares.h>

namespace happy {

// Must outlive the channel that it was given to.
class dns_sockets {
 public:
  // To be called before the channel's first query.
  void attach(ares_channel channel);

  // For ares_options::sock_state_cb, with this object as its data.
  static void watch(void* self, ares_socket_t fd, int readable, int writable);

  bounded_vector<pollfd, max_query_fds> poll_set() const;
  bool knows(int fd) const { return find(fd) != nullptr; }

 private:
  struct entry {
    guarded_socket socket;
    short events = 0;
  };

  static ares_socket_t open(int domain, int type, int protocol, void* self);
  static int close(ares_socket_t fd, void* self);
  static int connect(ares_socket_t fd, const sockaddr* to, ares_socklen_t length, void* self);
  static ares_ssize_t receive(ares_socket_t fd, void* data, size_t size, int flags, sockaddr* from,
                              ares_socklen_t* length, void* self);
  static ares_ssize_t send(ares_socket_t fd, const iovec* parts, int count, void* self);

  const entry* find(int fd) const;
  entry* find(int fd);
  bool owns(int fd) const;

  entry entries_[max_query_fds];
};

}  // namespace happy
