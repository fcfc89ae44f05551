// Sockets that are tied to an interface (SO_BINDTODEVICE, IP_UNICAST_IF: curl --interface). The kernel takes every IPv4
// destination for a neighbour there where it has no route, even on an interface without any IPv4 address, and so
// never says that a NAT64 is needed.
#pragma once

#include <sys/socket.h>

#include <atomic>

namespace happy {

inline constinit std::atomic<bool> any_tied_socket{false};

// Of every setsockopt() of the program.
void note_tie(int level, int option);

// Whether `to` is an IPv4 destination to which `fd`, tied to an interface, has no address to go from.
//
// Context:  one load and one branch in a program that has tied none; else some system calls. errno survives.
bool is_tied_without_ipv4(int fd, const sockaddr* to, socklen_t length);

}  // namespace happy
