#include "resolver/raw_reply.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "resolver/text_scan.h"

namespace happy {
namespace {

constexpr std::size_t identifier_size = 2;
constexpr std::size_t type_and_class_size = 4;
constexpr std::size_t counts_at = 6;  // of answers, authorities and additional records

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void raw_reply::expect(std::span<const std::uint8_t> query) {
  forget();
  head_size_ = 0;
  std::size_t at = header_size;
  while (at < query.size() && query[at] != 0) at += query[at] + std::size_t{1};
  const std::size_t end = at + 1 + type_and_class_size;
  if (end > query.size() || end > max_head) return;
  std::copy_n(query.begin(), end, head_);
  head_size_ = end;
}

// No length byte of a label looks like a letter.
bool raw_reply::answers(std::span<const std::uint8_t> message) const {
  if (head_size_ == 0 || message.size() < head_size_) return false;
  const std::span<const std::uint8_t> head(head_, head_size_);
  const std::size_t name_size = head_size_ - header_size - type_and_class_size;
  const auto same = [&](std::size_t at, std::size_t size) {
    return std::ranges::equal(head.subspan(at, size), message.subspan(at, size));
  };
  return same(0, identifier_size) && same(header_size + name_size, type_and_class_size) &&
         equal_ignoring_case(text_of(head.subspan(header_size, name_size)),
                             text_of(message.subspan(header_size, name_size)));
}

void raw_reply::keep(std::span<const std::uint8_t> message) {
  if (bytes_ != nullptr || !make_room(message.size())) return;
  std::copy(message.begin(), message.end(), bytes_.get());
  size_ = message.size();
}

void raw_reply::keep_part(std::span<const std::uint8_t> bytes) {
  while (length_seen_ < length_size && !bytes.empty()) {
    length_[length_seen_++] = bytes.front();
    bytes = bytes.subspan(1);
    if (length_seen_ == length_size) make_room(std::size_t{length_[0]} << 8 | length_[1]);
  }
  const std::size_t count = std::min(bytes.size(), room_ - size_);
  std::copy_n(bytes.begin(), count, bytes_.get() + size_);
  size_ += count;
}

std::span<const std::uint8_t> raw_reply::bytes() const {
  const std::span<const std::uint8_t> whole(bytes_.get(), size_ == room_ ? size_ : 0);
  return answers(whole) ? whole : whole.first(0);
}

std::size_t raw_reply::write_head(std::span<std::uint8_t> to) const {
  if (bytes().size() < head_size_ || to.size() < head_size_) return 0;
  std::copy_n(bytes_.get(), head_size_, to.begin());
  std::fill(to.begin() + counts_at, to.begin() + header_size, std::uint8_t{0});
  return head_size_;
}

void raw_reply::forget() {
  bytes_.reset();
  length_seen_ = room_ = size_ = 0;
}

bool raw_reply::make_room(std::size_t size) {
  bytes_.reset(new (std::nothrow) std::uint8_t[size]);
  room_ = bytes_ == nullptr ? 0 : size;
  return bytes_ != nullptr;
}

}  // namespace happy
