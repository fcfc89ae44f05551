// Builds DNS replies byte by byte, well-formed or not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/addresses.h"

namespace happy::test {

class dns_message {
 public:
  // Answers `query` (its header and question are copied): QR, RD and RA set.
  explicit dns_message(const std::vector<std::uint8_t>& query, unsigned rcode = 0,
                       bool truncated = false) {
    const std::size_t question_end = end_of_question(query);
    bytes_.assign(query.begin(), query.begin() + static_cast<std::ptrdiff_t>(question_end));
    bytes_[2] = static_cast<std::uint8_t>(0x81 | (truncated ? 2 : 0));
    bytes_[3] = static_cast<std::uint8_t>(0x80 | rcode);
    for (std::size_t i = 6; i < 12; ++i) bytes_[i] = 0;
  }

  dns_message& address_record(const std::string& owner, const std::string& text,
                              std::uint32_t ttl = 300) {
    const address a = ip(text);
    const std::size_t size = a.family == family::ipv4 ? 4 : 16;
    const std::vector<std::uint8_t> data(a.bytes.begin(),
                                         a.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    return record(owner, a.family == family::ipv4 ? 1 : 28, ttl, data);
  }

  dns_message& alias_record(const std::string& owner, const std::string& target,
                            std::uint32_t ttl = 300) {
    return record(owner, 5, ttl, wire_name(target));
  }

  dns_message& record(const std::string& owner, unsigned type, std::uint32_t ttl,
                      const std::vector<std::uint8_t>& data) {
    append(wire_name(owner));
    number16(type);
    number16(1);
    number16(ttl >> 16);
    number16(ttl & 0xffff);
    number16(static_cast<unsigned>(data.size()));
    append(data);
    const unsigned count = static_cast<unsigned>(bytes_[6] << 8 | bytes_[7]) + 1;
    bytes_[6] = static_cast<std::uint8_t>(count >> 8);
    bytes_[7] = static_cast<std::uint8_t>(count);
    return *this;
  }

  std::vector<std::uint8_t>& bytes() { return bytes_; }

  static std::vector<std::uint8_t> wire_name(std::string_view name) {
    std::vector<std::uint8_t> wire;
    while (!name.empty()) {
      const std::string_view label = name.substr(0, name.find('.'));
      wire.push_back(static_cast<std::uint8_t>(label.size()));
      wire.insert(wire.end(), label.begin(), label.end());
      name.remove_prefix(std::min(name.size(), label.size() + 1));
    }
    wire.push_back(0);
    return wire;
  }

  static std::vector<std::uint8_t> query_for(std::string_view name, unsigned type) {
    std::vector<std::uint8_t> query = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    const auto wire = wire_name(name);
    query.insert(query.end(), wire.begin(), wire.end());
    for (const unsigned byte : {0u, type, 0u, 1u}) query.push_back(static_cast<std::uint8_t>(byte));
    return query;
  }

  static std::string name_in(const std::vector<std::uint8_t>& query) {
    std::string name;
    for (std::size_t at = 12; at < query.size() && query[at] != 0; at += query[at] + 1u) {
      if (!name.empty()) name += '.';
      name.append(query.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                  query.begin() + static_cast<std::ptrdiff_t>(at) + 1 + query[at]);
    }
    return name;
  }

 private:
  static std::size_t end_of_question(const std::vector<std::uint8_t>& query) {
    std::size_t at = 12;
    while (query.at(at) != 0) at += query.at(at) + 1u;
    return at + 5;
  }

  void number16(unsigned value) {
    bytes_.push_back(static_cast<std::uint8_t>(value >> 8));
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  void append(const std::vector<std::uint8_t>& more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
  }

  std::vector<std::uint8_t> bytes_;
};

}  // namespace happy::test
