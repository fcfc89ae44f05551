// One line of the trace: a JSON object built in place, without allocation, at most PIPE_BUF bytes so
// that write(2) does not tear it. What does not fit is cut at a field's end and marked.
#pragma once

#include <climits>
#include <cstdint>
#include <cstring>

#include "shim/base/endpoint.h"

namespace happy {

class json_line {
 public:
  // `time_us` is CLOCK_MONOTONIC.
  json_line(const char* event, std::int64_t time_us, std::int64_t pid, std::int64_t tid) {
    append("{\"time_ms\":");
    append_number(time_us / 1000);
    char fraction[5] = {'.', digit(time_us / 100), digit(time_us / 10), digit(time_us), 0};
    append(fraction);
    number("pid", pid);
    number("tid", tid);
    text("event", event);
  }

  json_line& number(const char* key, std::int64_t value) {
    const std::size_t before = begin_field(key);
    append_number(value);
    return end_field(before);
  }

  json_line& text(const char* key, const char* value) {
    const std::size_t before = begin_field(key);
    append("\"");
    append_escaped(value);
    append("\"");
    return end_field(before);
  }

  json_line& where(const char* key, const address& a) { return text(key, to_text(a).chars); }

  // "[2001:db8::1]:80" or "192.0.2.1:80"
  json_line& where(const char* key, const endpoint& e) {
    const std::size_t before = begin_field(key);
    append(e.address.family == family::ipv6 ? "\"[" : "\"");
    append(to_text(e.address).chars);
    append(e.address.family == family::ipv6 ? "]:" : ":");
    append_number(e.port);
    append("\"");
    return end_field(before);
  }

  // ["2001:db8::1","192.0.2.1"]; `count` elements are asked for one by one.
  template <typename AddressAt>
  json_line& list(const char* key, std::size_t count, AddressAt&& address_at) {
    const std::size_t before = begin_field(key);
    append("[");
    for (std::size_t i = 0; i < count; ++i) {
      append(i == 0 ? "\"" : ",\"");
      append(to_text(address_at(i)).chars);
      append("\"");
    }
    append("]");
    return end_field(before);
  }

  // Ends the object. Nothing may be added afterwards.
  void finish() {
    if (cut_) append_reserved(",\"cut\":true");
    append_reserved("}\n");
  }

  const char* data() const { return chars_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t reserve = 16;  // for finish()
  static constexpr std::size_t limit = PIPE_BUF - reserve;

  static char digit(std::int64_t value) { return static_cast<char>('0' + value % 10); }

  std::size_t begin_field(const char* key) {
    const std::size_t before = size_;
    append(",\"");
    append(key);
    append("\":");
    return before;
  }

  json_line& end_field(std::size_t before) {
    if (overflow_) {
      size_ = before;
      overflow_ = false;
      cut_ = true;
    }
    return *this;
  }

  void append(const char* s) { append(s, std::strlen(s)); }

  void append(const char* s, std::size_t length) {
    if (overflow_ || length > limit - size_) {
      overflow_ = true;
      return;
    }
    std::memcpy(chars_ + size_, s, length);
    size_ += length;
  }

  void append_reserved(const char* s) {
    const std::size_t length = std::strlen(s);
    std::memcpy(chars_ + size_, s, length);
    size_ += length;
  }

  void append_number(std::int64_t value) {
    char digits[20];
    std::size_t at = sizeof digits;
    const bool negative = value < 0;
    auto rest =
        negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do {
      digits[--at] = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (negative) append("-");
    append(digits + at, sizeof digits - at);
  }

  void append_escaped(const char* s) {
    static constexpr char hex[] = "0123456789abcdef";
    for (; *s != 0; ++s) {
      const auto c = static_cast<unsigned char>(*s);
      if (c == '"' || c == '\\') {
        const char escaped[2] = {'\\', *s};
        append(escaped, 2);
      } else if (c < 0x20 || c >= 0x7f) {  // bytes of a name are not always UTF-8
        const char escaped[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        append(escaped, 6);
      } else {
        append(s, 1);
      }
    }
  }

  char chars_[PIPE_BUF];
  std::size_t size_ = 0;
  bool overflow_ = false;
  bool cut_ = false;
};

}  // namespace happy
