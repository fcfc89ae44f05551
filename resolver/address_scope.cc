#include "resolver/address_scope.h"

namespace happy {
namespace {

// Where a block carries an IPv4 address.
enum class embedding : std::uint8_t {
  none,
  last_32_bits,  // RFC 4291 s2.5.5, RFC 6052 s2.1
  after_prefix,  // 6to4: RFC 3056 s2
  inverted,      // Teredo: the client's address, every bit flipped, at the end (RFC 4380 s4)
  local_nat64,   // RFC 8215 leaves the form to the operator: see embedded_in()
};

struct block {
  family ip;
  std::array<std::uint8_t, 16> prefix;
  std::uint8_t length;
  privacy judgement;
  std::string_view name;
  embedding carries = embedding::none;
};

constexpr auto v4 = family::ipv4;
constexpr auto v6 = family::ipv6;

// The registries as of 2025, with their names, and at the end what is special without being there.
// The longest prefix decides. The reachability of 192.88.99.0/24 and 2002::/16 is "N/A" there: the
// former is ordinary unicast now, the latter is what the IPv4 address in it is.
constexpr block blocks[] = {
    {v4, {0}, 8, privacy::special, "This network"},
    {v4, {0}, 32, privacy::own_host, "This host on this network"},
    {v4, {10}, 8, privacy::special, "Private-Use"},
    {v4, {100, 64}, 10, privacy::special, "Shared Address Space"},
    {v4, {127}, 8, privacy::own_host, "Loopback"},
    {v4, {169, 254}, 16, privacy::link_local, "Link Local"},
    {v4, {172, 16}, 12, privacy::special, "Private-Use"},
    {v4, {192, 0, 0}, 24, privacy::special, "IETF Protocol Assignments"},
    {v4, {192, 0, 0}, 29, privacy::special, "IPv4 Service Continuity Prefix"},
    {v4, {192, 0, 0, 8}, 32, privacy::special, "IPv4 dummy address"},
    {v4, {192, 0, 0, 9}, 32, privacy::global, "Port Control Protocol Anycast"},
    {v4, {192, 0, 0, 10}, 32, privacy::global, "Traversal Using Relays around NAT Anycast"},
    {v4, {192, 0, 0, 170}, 32, privacy::special, "NAT64/DNS64 Discovery"},
    {v4, {192, 0, 0, 171}, 32, privacy::special, "NAT64/DNS64 Discovery"},
    {v4, {192, 0, 2}, 24, privacy::special, "Documentation (TEST-NET-1)"},
    {v4, {192, 31, 196}, 24, privacy::global, "AS112-v4"},
    {v4, {192, 52, 193}, 24, privacy::global, "AMT"},
    {v4, {192, 88, 99}, 24, privacy::global, "Deprecated (6to4 Relay Anycast)"},
    {v4, {192, 88, 99, 2}, 32, privacy::special, "6a44-relay anycast address"},
    {v4, {192, 168}, 16, privacy::special, "Private-Use"},
    {v4, {192, 175, 48}, 24, privacy::global, "Direct Delegation AS112 Service"},
    {v4, {198, 18}, 15, privacy::special, "Benchmarking"},
    {v4, {198, 51, 100}, 24, privacy::special, "Documentation (TEST-NET-2)"},
    {v4, {203, 0, 113}, 24, privacy::special, "Documentation (TEST-NET-3)"},
    {v4, {240}, 4, privacy::special, "Reserved"},
    {v4, {255, 255, 255, 255}, 32, privacy::special, "Limited Broadcast"},

    {v6,
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
     128,
     privacy::own_host,
     "Loopback Address"},
    {v6, {}, 128, privacy::own_host, "Unspecified Address"},
    {v6,
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff},
     96,
     privacy::global,
     "IPv4-mapped Address",
     embedding::last_32_bits},
    {v6,
     {0, 0x64, 0xff, 0x9b},
     96,
     privacy::global,
     "IPv4-IPv6 Translat.",
     embedding::last_32_bits},
    {v6,
     {0, 0x64, 0xff, 0x9b, 0, 1},
     48,
     privacy::special,
     "IPv4-IPv6 Translat.",
     embedding::local_nat64},
    {v6, {1}, 64, privacy::special, "Discard-Only Address Block"},
    {v6, {1, 0, 0, 0, 0, 0, 0, 1}, 64, privacy::special, "Dummy IPv6 Prefix"},
    {v6, {0x20, 1}, 23, privacy::special, "IETF Protocol Assignments"},
    {v6, {0x20, 1}, 32, privacy::special, "TEREDO", embedding::inverted},
    {v6,
     {0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
     128,
     privacy::global,
     "Port Control Protocol Anycast"},
    {v6,
     {0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2},
     128,
     privacy::global,
     "Traversal Using Relays around NAT Anycast"},
    {v6,
     {0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3},
     128,
     privacy::global,
     "DNS-SD Service Registration Protocol Anycast"},
    {v6, {0x20, 1, 0, 2}, 48, privacy::special, "Benchmarking"},
    {v6, {0x20, 1, 0, 3}, 32, privacy::global, "AMT"},
    {v6, {0x20, 1, 0, 4, 1, 0x12}, 48, privacy::global, "AS112-v6"},
    {v6, {0x20, 1, 0, 0x10}, 28, privacy::special, "Deprecated (previously ORCHID)"},
    {v6, {0x20, 1, 0, 0x20}, 28, privacy::global, "ORCHIDv2"},
    {v6,
     {0x20, 1, 0, 0x30},
     28,
     privacy::global,
     "Drone Remote ID Protocol Entity Tags (DETs) Prefix"},
    {v6, {0x20, 1, 0x0d, 0xb8}, 32, privacy::special, "Documentation"},
    {v6, {0x20, 2}, 16, privacy::global, "6to4", embedding::after_prefix},
    {v6, {0x26, 0x20, 0, 0x4f, 0x80, 0}, 48, privacy::global, "Direct Delegation AS112 Service"},
    {v6, {0x3f, 0xff}, 20, privacy::special, "Documentation"},
    {v6, {0x5f, 0}, 16, privacy::special, "Segment Routing (SRv6) SIDs"},
    {v6, {0xfc}, 7, privacy::special, "Unique-Local"},
    {v6, {0xfe, 0x80}, 10, privacy::link_local, "Link-Local Unicast"},

    {v4, {224}, 4, privacy::special, "Multicast"},
    {v6, {}, 96, privacy::global, "IPv4-compatible Address", embedding::last_32_bits},
    {v6, {0xfe, 0xc0}, 10, privacy::special, "Site-Local Unicast"},
    {v6, {0xff}, 8, privacy::special, "Multicast"},
};

bool contains(const block& b, const address& a) {
  if (b.ip != a.family) return false;
  const int whole = b.length / 8;
  if (std::memcmp(b.prefix.data(), a.bytes.data(), static_cast<std::size_t>(whole)) != 0)
    return false;
  const int rest = b.length % 8;
  if (rest == 0) return true;
  const auto index = static_cast<std::size_t>(whole);
  return ((b.prefix[index] ^ a.bytes[index]) >> (8 - rest)) == 0;
}

const block* block_of(const address& a) {
  const block* longest = nullptr;
  for (const block& b : blocks) {
    if (contains(b, a) && (longest == nullptr || b.length > longest->length)) longest = &b;
  }
  return longest;
}

// Of 64:ff9b:1::/48 an operator uses the whole (RFC 6052's /48 form, whose last 40 bits are zero)
// or, as most do, a /96 of it.
address local_nat64_address(const std::array<std::uint8_t, 16>& b) {
  if (b[11] == 0 && b[12] == 0 && b[13] == 0 && b[14] == 0 && b[15] == 0) {
    return make_ipv4(b[6], b[7], b[9], b[10]);
  }
  return make_ipv4(b[12], b[13], b[14], b[15]);
}

address embedded_in(const address& a, embedding form) {
  const auto& b = a.bytes;
  const auto flip = [](std::uint8_t byte) { return static_cast<std::uint8_t>(~byte); };
  switch (form) {
    case embedding::after_prefix: return make_ipv4(b[2], b[3], b[4], b[5]);
    case embedding::inverted: return make_ipv4(flip(b[12]), flip(b[13]), flip(b[14]), flip(b[15]));
    case embedding::local_nat64: return local_nat64_address(b);
    case embedding::last_32_bits:
    case embedding::none: break;
  }
  return make_ipv4(b[12], b[13], b[14], b[15]);
}

// The block that decides: the address's own, or that of the IPv4 address in it if more private.
const block* deciding_block(const address& a) {
  const block* outer = block_of(a);
  if (outer == nullptr || outer->carries == embedding::none) return outer;
  const block* inner = block_of(embedded_in(a, outer->carries));
  return inner != nullptr && inner->judgement < outer->judgement ? inner : outer;
}

}  // namespace

privacy privacy_of(const address& a, bool own) {
  if (own) return privacy::own_host;
  const block* b = deciding_block(a);
  return b == nullptr ? privacy::global : b->judgement;
}

std::string_view block_name(const address& a) {
  const block* b = deciding_block(a);
  return b == nullptr ? std::string_view{} : b->name;
}

const char* to_text(privacy p) {
  switch (p) {
    case privacy::own_host: return "own_host";
    case privacy::link_local: return "link_local";
    case privacy::special: return "special";
    case privacy::global: break;
  }
  return "global";
}

}  // namespace happy
