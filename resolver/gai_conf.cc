#include "resolver/gai_conf.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <string>

#include "resolver/text_file.h"
#include "resolver/text_scan.h"

namespace happy {
namespace {

constexpr unsigned long mapped_length = 96;

// strtoul() as glibc asks it: what it takes as a number up to `most`, else false.
bool parse_number(std::string_view text, unsigned long most, unsigned long& value) {
  const std::string digits(text);
  char* end = nullptr;
  errno = 0;
  const unsigned long number = std::strtoul(digits.c_str(), &end, 10);
  if (errno != 0 || *end != 0 || number > most) return false;
  value = number;
  return true;
}

struct prefix {
  std::array<std::uint8_t, 16> bytes{};
  unsigned long length = 128;
};

// Cuts "/LENGTH" off `text`; false if it is no number up to `most`.
bool take_length(std::string_view& text, unsigned long most, unsigned long& length) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return true;
  const std::string_view digits = text.substr(slash + 1);
  text = text.substr(0, slash);
  return parse_number(digits, most, length);
}

bool parse_ipv6(std::string_view text, prefix& out) {
  prefix p;
  if (!take_length(text, 128, p.length)) return false;
  if (inet_pton(AF_INET6, std::string(text).c_str(), p.bytes.data()) != 1) return false;
  out = p;
  return true;
}

// scopev4 takes ::ffff:a.b.c.d with 96 bits or more, or a.b.c.d.
bool parse_scope_prefix(std::string_view text, prefix& out) {
  if (parse_ipv6(text, out)) {
    return out.length >= mapped_length &&
           is_v4_mapped({.family = family::ipv6, .bytes = out.bytes});
  }
  prefix p;
  p.length = 32;
  if (!take_length(text, 32, p.length)) return false;
  if (inet_pton(AF_INET, std::string(text).c_str(), p.bytes.data() + 12) != 1) return false;
  p.bytes[10] = p.bytes[11] = 0xff;
  p.length += mapped_length;
  out = p;
  return true;
}

void add_row(std::vector<policy_row>& rows, const prefix& p, std::string_view value) {
  unsigned long number = 0;
  if (rows.size() == max_gai_conf_rows || !parse_number(value, INT_MAX, number)) return;
  rows.push_back({p.bytes, static_cast<std::uint8_t>(p.length), static_cast<std::int32_t>(number)});
}

void read_line(gai_conf& conf, std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::string_view keyword = take_word(line, is_space);
  const std::string_view where = take_word(line, is_space);
  const std::string_view value = take_word(line, is_space);
  prefix p;
  if (keyword == "label" && parse_ipv6(where, p)) add_row(conf.labels, p, value);
  if (keyword == "precedence" && parse_ipv6(where, p)) add_row(conf.precedences, p, value);
  if (keyword == "scopev4" && parse_scope_prefix(where, p)) add_row(conf.ipv4_scopes, p, value);
}

// Longest prefix first, and a row for every address at the end, as glibc completes the tables.
void finish(std::vector<policy_row>& rows, std::uint8_t shortest, std::int32_t otherwise) {
  if (rows.empty()) return;
  const bool complete = std::any_of(rows.begin(), rows.end(), [&](const policy_row& row) {
    return row.prefix_length <= shortest;
  });
  if (!complete) rows.push_back({{}, 0, otherwise});
  std::stable_sort(rows.begin(), rows.end(), [](const policy_row& a, const policy_row& b) {
    return a.prefix_length > b.prefix_length;
  });
}

std::atomic<bool> known_local{false};

}  // namespace

gai_conf parse_gai_conf(std::string_view text) {
  gai_conf conf;
  while (!text.empty()) read_line(conf, take_line(text));
  finish(conf.labels, 0, 1);
  finish(conf.precedences, 0, 40);
  finish(conf.ipv4_scopes, mapped_length, 14);
  return conf;
}

policy_table gai_conf::table() const {
  policy_table table = glibc_policy();
  if (!labels.empty()) table.labels = labels;
  if (!precedences.empty()) table.precedences = precedences;
  if (!ipv4_scopes.empty()) table.ipv4_scopes = ipv4_scopes;
  return table;
}

policy_table system_policy() {
  // No guarded static, whose lock a fork could leave taken: who comes second throws its copy away.
  static constinit std::atomic<const gai_conf*> kept{nullptr};
  const gai_conf* conf = kept.load(std::memory_order_acquire);
  if (conf == nullptr) {
    text_file file("/etc/gai.conf", max_gai_conf_bytes);
    file.refresh();
    auto mine = std::make_unique<const gai_conf>(parse_gai_conf(*file.text()));
    if (kept.compare_exchange_strong(conf, mine.get(), std::memory_order_acq_rel))
      conf = mine.release();
  }
  policy_table table = conf->table();
  table.known_local_ula = known_local.load(std::memory_order_relaxed);
  return table;
}

void prefer_known_local_ula(bool wished) { known_local.store(wished, std::memory_order_relaxed); }

}  // namespace happy
