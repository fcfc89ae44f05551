#include "shim/translated.h"

#include <unistd.h>

#include <vector>

#include "tests/support/catch.h"

namespace {

std::uint64_t cookie_of(int fd) {
  std::uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  REQUIRE(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0);
  return cookie;
}

}  // namespace

TEST_CASE("translated: sockets that exist are kept, those that were closed make room",
          "[translated]") {
  constexpr std::uint32_t flags = HAPPY_TRANSLATED_MAPPED;
  std::vector<int> kept;
  for (std::uint32_t i = 0; i < 50; ++i) {
    kept.push_back(socket(AF_UNIX, SOCK_STREAM, 0));
    happy::note_translated(cookie_of(kept.back()), i, flags);
  }
  // No socket of this boot has such numbers; five times what the table holds.
  constexpr std::uint64_t closed = std::uint64_t{1} << 60;
  bool all_found = true;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    happy::note_translated(closed + i, i, 0);
    std::uint32_t ipv4 = 0;
    std::uint32_t found_flags = 0;
    all_found =
        all_found && happy::find_translated(closed + i, &ipv4, &found_flags) == 1 && ipv4 == i;
  }
  CHECK(all_found);
  for (std::uint32_t i = 0; i < kept.size(); ++i) {
    const int copy = dup(kept[i]);
    close(kept[i]);
    happy::translated_socket s;
    CHECK(happy::is_translated(copy, s));
    CHECK(s.ipv4 == i);
    CHECK(s.flags == flags);
    close(copy);
  }
  happy::translated_socket s;
  CHECK_FALSE(happy::is_translated(-1, s));
}
