#include "resolver/pref64_file.h"

#include <fcntl.h>

#include <array>
#include <charconv>
#include <ctime>
#include <iterator>

#include "resolver/text_scan.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

constexpr std::string_view heading = "happy-pref64 1 network ";

// Of the folder and, behind it, the longest number.
constexpr std::size_t max_path = 256;

using path_buffer = std::array<char, max_path>;

// False: longer than any place for such a file.
bool append(path_buffer& path, std::size_t& at, std::string_view text) {
  if (text.size() >= path.size() - at) return false;
  at += text.copy(path.data() + at, text.size());
  path[at] = 0;
  return true;
}

bool append(path_buffer& path, std::size_t& at, std::uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
  return append(path, at, {digits, static_cast<std::size_t>(end - digits)});
}

// One that ends: a file that breaks off in mid-line is not whole.
std::string_view take_ended_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return {};
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

// What stands behind "KEY ", up to the next space; the line goes on behind it. Empty: it is not there.
std::string_view take_field(std::string_view& line, std::string_view key) {
  if (line.substr(0, key.size()) != key || line.size() <= key.size() || line[key.size()] != ' ')
    return {};
  line.remove_prefix(key.size() + 1);
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view value = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return value;
}

bool read_router(std::string_view text, address& out) {
  char chars[INET6_ADDRSTRLEN] = {};
  if (text.empty() || text.size() >= sizeof chars) return false;
  text.copy(chars, text.size());
  in6_addr in6;
  if (inet_pton(AF_INET6, chars, &in6) != 1) return false;
  out = from_in6_addr(in6);
  return true;
}

std::optional<stored_prefix> parse_line(std::string_view line) {
  stored_prefix p;
  const auto prefix = parse_prefix(take_field(line, "prefix"));
  if (!prefix || !read_number(take_field(line, "interface"), p.who.interface) ||
      !read_router(take_field(line, "router"), p.who.router) ||
      !read_number(take_field(line, "expires"), p.expires_s) || !line.empty()) {
    return std::nullopt;
  }
  p.prefix = *prefix;
  return p;
}

bool is_closed(const struct stat& s) { return (s.st_mode & (S_IWGRP | S_IWOTH)) == 0; }

std::int64_t boot_seconds() {
  timespec t{};
  real->clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec;
}

}  // namespace

std::string format_prefixes(std::span<const stored_prefix> list, std::uint64_t network) {
  std::string text = std::string(heading) + std::to_string(network) + "\n";
  for (const stored_prefix& p : list) {
    text += std::string("prefix ") + to_text(p.prefix).chars + " interface " +
            std::to_string(p.who.interface) + " router " + to_text(p.who.router).chars +
            " expires " + std::to_string(p.expires_s) + "\n";
  }
  return text + "end\n";
}

std::optional<stored_list> parse_prefixes(std::string_view text, std::uint64_t network) {
  if (text.size() > max_pref64_file) return std::nullopt;
  std::string_view head = take_ended_line(text);
  std::uint64_t of_network = 0;
  if (head.substr(0, heading.size()) != heading) return std::nullopt;
  head.remove_prefix(heading.size());
  if (!read_number(head, of_network) || of_network != network) return std::nullopt;
  stored_list list;
  while (!text.empty()) {
    const std::string_view line = take_ended_line(text);
    if (line == "end" && text.empty()) return list;
    const auto p = parse_line(line);
    if (!p || !list.push_back(*p)) return std::nullopt;
  }
  return std::nullopt;
}

std::uint64_t current_network() {
  struct stat s {};
  return real->stat("/proc/self/ns/net", &s) == 0 ? s.st_ino : 0;
}

bool may_be_believed(const struct stat& parent, const struct stat& folder,
                     const struct stat& file) {
  if (!S_ISDIR(parent.st_mode) || parent.st_uid != 0 || !is_closed(parent)) return false;
  if (!S_ISDIR(folder.st_mode) || !is_closed(folder)) return false;
  const bool by_service = file.st_uid == 0 || file.st_uid == folder.st_uid;
  return S_ISREG(file.st_mode) && is_closed(file) && by_service;
}

bool pref64_file::has_changed(const char* path) {
  struct stat s {};
  file_version now;
  if (real->stat(path, &s) == 0) now = version_of(s);
  if (now == known_) return false;
  known_ = now;
  return true;
}

// Empty: it is not there, or not to be believed.
std::string_view pref64_file::read(const char* path) {
  path_buffer above;
  std::size_t length = 0;
  const std::string_view folder_path(folder_);
  if (!append(above, length, folder_path.substr(0, folder_path.rfind('/')))) return {};
  struct stat parent {};
  struct stat folder {};
  struct stat file {};
  constexpr int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const unique_fd folder_fd(real->open(folder_, O_PATH | O_DIRECTORY | flags));
  const unique_fd file_fd(real->open(path, O_RDONLY | flags));
  if (!folder_fd.valid() || !file_fd.valid() || real->stat(above.data(), &parent) != 0 ||
      real->fstat(folder_fd.get(), &folder) != 0 || real->fstat(file_fd.get(), &file) != 0 ||
      !may_be_believed(parent, folder, file)) {
    return {};
  }
  const ssize_t size = real->read(file_fd.get(), text_, sizeof text_);
  return {text_, size < 0 ? 0 : static_cast<std::size_t>(size)};
}

void pref64_file::forget() {
  known_ = {};
  network_ = 0;
}

void pref64_file::refresh(prefix_table& table, time_point now) {
  errno_saver keep;
  const std::uint64_t network = current_network();
  path_buffer path;
  std::size_t length = 0;
  if (!append(path, length, folder_) || !append(path, length, "/") ||
      !append(path, length, network)) {
    return;
  }
  if (!has_changed(path.data()) && network == network_) return;
  network_ = network;
  table.clear_advertised();
  if (network == 0 || known_.size <= 0) return;
  const auto list = parse_prefixes(read(path.data()), network);
  if (!list) return;
  const std::int64_t boot = boot_seconds();
  for (const stored_prefix& p : *list) {
    if (p.expires_s > boot)
      table.advertise(p.who, p.prefix, std::chrono::seconds(p.expires_s - boot), now);
  }
}

}  // namespace happy
