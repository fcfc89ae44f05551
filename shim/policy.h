// Race or pass through, decided from values alone, cheapest question first.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <cstdint>

namespace happy {

// Why a call went straight to the real function. The trace and the README use the same words.
enum class pass_reason : std::uint8_t {
  none,            // it did not
  no_name,         // getaddrinfo: node is NULL
  numeric,         // getaddrinfo: the node is an address already
  not_ip,          // connect: AF_UNIX, AF_UNSPEC, ...
  engine_missing,  // the engine could not be loaded or was not trusted
};

const char* to_text(pass_reason reason);

// Whether getaddrinfo(node, ..., hints) is the real function's alone. Signal-safe.
pass_reason judge_lookup(const char* node, const addrinfo* hints);

// Whether connect(to, length) is the real function's alone. Signal-safe.
pass_reason judge_connect(const sockaddr* to, socklen_t length);

}  // namespace happy
