// The RDATA of SVCB and HTTPS records: priority, target, and parameters in ascending order of their keys.

#include <algorithm>
#include <string_view>

#include "resolver/service_record.h"
#include "resolver/wire_name.h"

namespace happy {
namespace {

using bytes = std::span<const std::uint8_t>;

// RFC 9460 s14.3.2
enum key : unsigned {
  key_mandatory = 0,
  key_alpn = 1,
  key_no_default_alpn = 2,
  key_port = 3,
  key_ipv4hint = 4,
  key_ech = 5,
  key_ipv6hint = 6,
};
constexpr unsigned known_keys = 7;

unsigned number16(bytes at) { return static_cast<unsigned>(at[0] << 8 | at[1]); }

// Protocols over QUIC; a client whose socket is TCP's cannot speak them.
bool is_over_udp(std::string_view alpn) {
  for (const std::string_view name : {"h3", "hq", "doq"}) {
    if (alpn == name) return true;
    if (alpn.starts_with(name) && alpn[name.size()] == '-') return true;  // of a draft: h3-29
  }
  return false;
}

class parameters {
 public:
  explicit parameters(service_record& record) : record_(record) {}

  // False: malformed.
  bool read(bytes data) {
    int previous = -1;
    while (!data.empty()) {
      if (data.size() < 4) return false;
      const unsigned key = number16(data);
      const std::size_t size = number16(data.subspan(2));
      data = data.subspan(4);
      if (static_cast<int>(key) <= previous || data.size() < size) return false;
      previous = static_cast<int>(key);
      if (!take(key, data.first(size))) return false;
      data = data.subspan(size);
    }
    judge();
    return true;
  }

 private:
  bool take(unsigned key, bytes value) {
    if (key < known_keys) present_ |= 1u << key;
    switch (key) {
      case key_mandatory: return take_mandatory(value);
      case key_alpn: return take_alpn(value);
      case key_no_default_alpn: return value.empty();
      case key_port: return take_port(value);
      case key_ipv4hint: return take_hints(value, family::ipv4, 4);
      case key_ipv6hint: return take_hints(value, family::ipv6, 16);
      case key_ech: return !value.empty();
      default: return true;
    }
  }

  bool take_mandatory(bytes value) {
    if (value.empty() || value.size() % 2 != 0) return false;
    unsigned previous = key_mandatory;  // which must not be listed itself
    for (; !value.empty(); value = value.subspan(2)) {
      const unsigned key = number16(value);
      if (key <= previous) return false;
      previous = key;
      if (key < known_keys)
        mandatory_ |= 1u << key;
      else
        record_.usable = false;
    }
    return true;
  }

  bool take_alpn(bytes value) {
    if (value.empty()) return false;
    while (!value.empty()) {
      const std::size_t size = value[0];
      if (size == 0 || value.size() <= size) return false;
      if (!is_over_udp({reinterpret_cast<const char*>(value.data()) + 1, size})) over_tcp_ = true;
      value = value.subspan(size + 1);
    }
    return true;
  }

  bool take_port(bytes value) {
    if (value.size() != 2) return false;
    record_.port = static_cast<std::uint16_t>(number16(value));
    if (record_.port == 0) record_.usable = false;
    return true;
  }

  bool take_hints(bytes value, family f, std::size_t size) {
    if (value.empty() || value.size() % size != 0) return false;
    value = value.first(std::min(value.size(), max_hints * size));
    for (; !value.empty(); value = value.subspan(size)) {
      address hint;
      hint.family = f;
      std::copy_n(value.begin(), size, hint.bytes.begin());
      record_.hints.push_back(hint);
    }
    return true;
  }

  // RFC 9460 s2.4.3: a record whose parameters contradict each other is rejected.
  void judge() {
    const auto has = [this](key k) { return (present_ & 1u << k) != 0; };
    if ((mandatory_ & ~present_) != 0) record_.usable = false;
    if (has(key_no_default_alpn) && (!has(key_alpn) || !over_tcp_)) record_.usable = false;
  }

  service_record& record_;
  unsigned present_ = 0;
  unsigned mandatory_ = 0;
  bool over_tcp_ = false;
};

}  // namespace

std::optional<service_record> parse_svcb(bytes rdata) {
  if (rdata.size() < 3) return std::nullopt;
  service_record record;
  record.priority = static_cast<std::uint16_t>(number16(rdata));
  const std::optional<wire_name> target = read_uncompressed_name(rdata.subspan(2));
  if (!target) return std::nullopt;
  record.target = target->text;
  record.usable = target->plain;
  // RFC 9460 s2.4.2: the parameters of an alias mean nothing.
  if (record.priority == 0) return record;
  if (!parameters(record).read(rdata.subspan(2 + target->size))) return std::nullopt;
  return record;
}

}  // namespace happy
