// Lines and words of configuration files, as C string functions would see them.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace happy {

// isspace() of the C locale, which programs cannot change under us.
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (to_lower(a[i]) != to_lower(b[i])) return false;
  }
  return true;
}

constexpr bool ends_with_ignoring_case(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         equal_ignoring_case(text.substr(text.size() - end.size()), end);
}

// Cuts the next line off `rest`, without its newline. What comes after a NUL byte in it is dropped:
// to C string functions the line ends there.
constexpr std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line.substr(0, line.find('\0'));
}

// Cuts the next word off `rest`; empty when there is none.
template <typename Predicate>
constexpr std::string_view take_word(std::string_view& rest, Predicate separates) {
  std::size_t begin = 0;
  while (begin < rest.size() && separates(rest[begin])) ++begin;
  std::size_t end = begin;
  while (end < rest.size() && !separates(rest[end])) ++end;
  const std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

// The whole text as a decimal number. False: it is none; `out` is not to be used then.
template <typename Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace happy
