// Which network this host is attached to, told apart without netlink.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "shim/base/endpoint.h"

namespace happy {

// Equal while the host goes out from the same addresses and, where it has no IPv6 address that only one network
// gives, by the same IPv4 gateway. 0: the network cannot be recognised.
//
// `scratch`: room for what /proc says; of longer texts only the beginning is looked at.
// Context:  any thread; signal-safe; no more than two sockets that send nothing and two files of /proc.
// Spec:     hev3 Sorting, SORT-4
std::uint64_t recognise_network(std::span<char> scratch);

// The gateway of the first default route in /proc/net/route.
std::optional<address> default_gateway(std::string_view routes);

// Its link-layer address in /proc/net/arp, "" if that is not known.
std::string_view hardware_address(std::string_view neighbours, const address& gateway);

}  // namespace happy
