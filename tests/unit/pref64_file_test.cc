#include "resolver/pref64_file.h"

#include <vector>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using test::ip;

const std::vector<stored_prefix> some = {
    {{2, ip("fe80::1")}, *parse_prefix("2001:db8:64::/96"), 1000},
    {{31, ip("fe80::2")}, *parse_prefix("2001:db8:122:300::/56"), 99999},
};

std::optional<std::vector<stored_prefix>> parsed(std::string_view text) {
  const auto list = parse_prefixes(text, 77);
  if (!list) return std::nullopt;
  return std::vector<stored_prefix>(list->begin(), list->end());
}

struct stat file_of(mode_t mode, uid_t owner) {
  struct stat s {};
  s.st_mode = mode;
  s.st_uid = owner;
  return s;
}

}  // namespace

TEST_CASE("PREF64 file: what is written is read", "[pref64_file][V6ONLY-3]") {
  CHECK(parsed(format_prefixes(some, 77)) == some);
  CHECK(parsed(format_prefixes({}, 77)) == std::vector<stored_prefix>{});
}

TEST_CASE("PREF64 file: cut off anywhere it is none", "[pref64_file]") {
  const std::string text = format_prefixes(some, 77);
  for (std::size_t size = 0; size < text.size(); ++size) {
    INFO(size);
    CHECK_FALSE(parse_prefixes(text.substr(0, size), 77));
  }
}

TEST_CASE("PREF64 file: another network's, and what is no such text", "[pref64_file]") {
  const std::string text = format_prefixes(some, 77);
  CHECK_FALSE(parse_prefixes(text, 78));
  CHECK_FALSE(parse_prefixes(text + "end\n", 77));
  CHECK_FALSE(parse_prefixes(text + "x", 77));
  CHECK_FALSE(parse_prefixes("happy-pref64 2 network 77\nend\n", 77));
  CHECK_FALSE(parse_prefixes("happy-pref64 1 network 77 \nend\n", 77));
  CHECK_FALSE(parse_prefixes("happy-pref64 1 network \nend\n", 77));
  const std::string head = "happy-pref64 1 network 77\n";
  for (const char* line :
       {"prefix", "prefix 2001:db8::/95 interface 2 router fe80::1 expires 1",
        "prefix 2001:db8::/96 interface x router fe80::1 expires 1",
        "prefix 2001:db8::/96 interface 2 router 192.0.2.1 expires 1",
        "prefix 2001:db8::/96 interface 2 router fe80::1 expires",
        "prefix 2001:db8::/96 interface 2 router fe80::1 expires 99999999999999999999",
        "prefix 2001:db8::/96 interface 2 router fe80::1 expires 1 more",
        "prefix 2001:db8::/96  interface 2 router fe80::1 expires 1"}) {
    INFO(line);
    CHECK_FALSE(parse_prefixes(head + line + "\nend\n", 77));
  }
}

TEST_CASE("PREF64 file: more lines than there can be", "[pref64_file]") {
  std::vector<stored_prefix> many(max_advertised, some[0]);
  CHECK(parse_prefixes(format_prefixes(many, 77), 77));
  many.push_back(some[0]);
  CHECK_FALSE(parse_prefixes(format_prefixes(many, 77), 77));
}

TEST_CASE("PREF64 file: believed where only root or its service can write", "[pref64_file]") {
  const struct stat run = file_of(S_IFDIR | 0755, 0);
  const struct stat folder = file_of(S_IFDIR | 0755, 61000);
  const struct stat file = file_of(S_IFREG | 0644, 61000);
  CHECK(may_be_believed(run, folder, file));
  CHECK(may_be_believed(run, folder, file_of(S_IFREG | 0644, 0)));
  CHECK_FALSE(may_be_believed(run, folder, file_of(S_IFREG | 0644, 1000)));
  CHECK_FALSE(may_be_believed(run, folder, file_of(S_IFREG | 0664, 61000)));
  CHECK_FALSE(may_be_believed(run, folder, file_of(S_IFREG | 0646, 61000)));
  CHECK_FALSE(may_be_believed(run, folder, file_of(S_IFIFO | 0644, 61000)));
  CHECK_FALSE(may_be_believed(run, file_of(S_IFDIR | 0777, 61000), file));
  CHECK_FALSE(may_be_believed(run, file_of(S_IFDIR | 0775, 61000), file));
  CHECK_FALSE(may_be_believed(file_of(S_IFDIR | 0755, 1000), folder, file));
  CHECK_FALSE(may_be_believed(file_of(S_IFDIR | 01777, 0), folder, file));
}

}  // namespace happy
