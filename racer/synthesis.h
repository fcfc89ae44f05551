// connect() to an IPv4 address on a network that has only IPv6: by way of the network's NAT64.
#pragma once

#include "racer/core.h"

namespace happy {

// The kernel has no route to the IPv4 address that the program named. Where the network has a NAT64, the
// socket behind the program's descriptor becomes one that can be connected to the synthesised address: a
// new AF_INET6 one in its likeness, unless it is one already (a JVM's). The addresses behind several
// prefixes, and the others of the name, are left for connect_begin() to race.
//
// Without a known prefix the DNS is asked for it, and waited for once.
//
// An address of the bridging pool leads to the IPv6 endpoints of the name that it was handed out for, in the same
// way and on every network.
//
// Context:  the caller's thread, without the lock.
// Spec:     hev3 IPv4 Address Literals, hev3 Virtual Private Networks; V6ONLY-2, V6ONLY-9, NAT64-2
happy_lookup_step synthesise(core& c, happy_synthesis& call);

// The IPv4 address that `a` is behind a prefix in force, in network order. Takes the lock.
bool ipv4_behind(core& c, const address& a, std::uint32_t& ipv4);

// The endpoints at which `ipv4` can be reached by a NAT64, one for each prefix.
bounded_vector<address, max_prefixes> synthesised(const prefix_list& prefixes, const address& ipv4);

// Whether IPv4 addresses of names are of use on a network without IPv4, because a prefix is known. Where one
// may be found, begins to look for it: connect() will soon need it.
//
// Context:  with the lock; sends a query at most, does not wait.
// Spec:     hev3 Discovering and Utilizing PREF64; V6ONLY-4, QUERY-2
struct ipv4_outlook {
  bool ipv6_only = false;
  prefix_list prefixes{};  // if so
};
ipv4_outlook expect_nat64(core& c, time_point now);

// V6ONLY-8: the A records of the race's name may exist, were not asked for, and could be of use.
//
// Context:  with the lock; signal-safe.
bool has_last_resort(core& c, const pending_race& r, time_point now);

// Asks for them. Not where nothing can be allocated.
void ask_last_resort(core& c, pending_race& r, time_point now);

// A winner that is about to replace the program's socket goes on being what the program made, if it is a
// synthesised one. With the lock.
void keep_translation(core& c, const pending_race& r);

}  // namespace happy
