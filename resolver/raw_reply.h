// A nameserver's reply to one query, byte for byte as it came. From 1.22 on c-ares reads a reply record by record and
// hands over what it writes anew from them: nothing where one record of many does not suit it. glibc looks at what it
// wants alone, and shows the bytes to whoever asks for them (res_query()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "resolver/wire_name.h"

namespace happy {

class raw_reply {
 public:
  // What came before is forgotten. Of a query that is no question of ours nothing will be an answer.
  void expect(std::span<const std::uint8_t> query);

  // Whether it has the query's identifier and question.
  bool answers(std::span<const std::uint8_t> message) const;

  // Keeps a whole message, if there is memory and none was kept before.
  void keep(std::span<const std::uint8_t> message);

  // Keeps the next bytes of a stream, which says the length first (RFC 1035 s4.2.2).
  void keep_part(std::span<const std::uint8_t> bytes);

  // Empty until all of a message that answers is there.
  std::span<const std::uint8_t> bytes() const;

  // Writes its header and question, as if it had no records; the size, or 0 if there is none or no room.
  std::size_t write_head(std::span<std::uint8_t> to) const;

  void forget();

 private:
  static constexpr std::size_t header_size = 12;  // RFC 1035 s4.1.1
  static constexpr std::size_t length_size = 2;
  static constexpr std::size_t max_head = header_size + max_wire_name + 4;

  bool make_room(std::size_t size);

  std::uint8_t head_[max_head] = {};  // of the query, with its question
  std::size_t head_size_ = 0;
  std::uint8_t length_[length_size] = {};
  std::size_t length_seen_ = 0;
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t room_ = 0;
  std::size_t size_ = 0;
};

}  // namespace happy
