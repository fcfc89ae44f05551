// The sockets of one c-ares channel: ours instead of its own, so that they are made by the real
// functions, checked before use, and moved out of the program's way when they outlive its call.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "resolver/dns_client.h"
#include "resolver/guarded_socket.h"
#include "resolver/raw_reply.h"
#include "shim/base/bounded_vector.h"

// Version 1.34 discourages what both it and 1.18 have.
#define CARES_NO_DEPRECATED
#include <ares.h>

namespace happy {

// What c-ares takes for a descriptor is a place in the list here, so that a socket can change its number.
//
// Must outlive the channel that it was given to.
class dns_sockets {
 public:
  // To be called before the channel's first query.
  void attach(ares_channel channel);

  // For ares_options::sock_state_cb, with this object as its data.
  static void watch(void* self, ares_socket_t place, int readable, int writable);

  // Another query on the same channel: nothing is open. `scope` is the nameserver's, of which c-ares
  // knows nothing: the interface index of a link-local one, or 0.
  void begin_query(std::uint32_t scope);

  // The program may have run since the last turn: each socket is asked again whether it is ours before
  // it is used. That holds for the turn, which does not wait.
  void begin_turn();

  // Moves what is open to hidden numbers, and from now on what will be opened. False if that is not
  // possible: the query is to be given up.
  bool hide();

  // Closes what is open; c-ares finds its descriptors gone. Nothing of it is told, or freed, now.
  void close_all();

  bounded_vector<pollfd, max_channel_fds> poll_set() const;

  // What c-ares calls a descriptor of poll_set(); ARES_SOCKET_BAD for any other.
  ares_socket_t place_of(int fd) const;

  bool none_open() const;
  int packets_sent() const { return packets_sent_; }

  // The reply to what was sent last, as it came; empty where it was not to be had so.
  std::span<const std::uint8_t> reply() const { return reply_.bytes(); }

 private:
  struct entry {
    guarded_socket socket;
    short events = 0;
    bool checked = false;  // was ours in this turn
    bool datagrams = false;
  };

  static ares_socket_t open(int domain, int type, int protocol, void* self);
  static int close(ares_socket_t place, void* self);
  static int connect(ares_socket_t place, const sockaddr* to, ares_socklen_t length, void* self);
  static ares_ssize_t receive(ares_socket_t place, void* data, size_t size, int flags,
                              sockaddr* from, ares_socklen_t* length, void* self);
  static ares_ssize_t send(ares_socket_t place, const iovec* parts, int count, void* self);

  ares_ssize_t receive_datagram(int fd, std::span<std::uint8_t> shown, int flags, sockaddr* from,
                                ares_socklen_t* length);
  entry* at(ares_socket_t place);
  int descriptor(ares_socket_t place);

  entry entries_[max_channel_fds];
  std::uint32_t scope_ = 0;
  bool hidden_ = false;
  int packets_sent_ = 0;
  raw_reply reply_;
};

}  // namespace happy
