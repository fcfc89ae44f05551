#include "resolver/history.h"

#include <vector>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using std::chrono::seconds;
using test::ip;

constexpr std::uint64_t here = 7;
constexpr std::uint64_t elsewhere = 8;
const address first = ip("2001:db8::1");
const address second = ip("2001:db8::2");
const address ipv4 = ip("192.0.2.1");
const std::uint64_t name = hash_of("www.example");
const std::uint64_t other_name = hash_of("mail.example");

constexpr time_point at(int s) { return time_point(seconds(s)); }

// A race for `of` that IPv4 has won at `s`: `lost` kept silent.
void lose(history& h, const address& lost, std::uint64_t of, int s) {
  h.apply(here, {.where = lost, .name = of, .connected = false, .at = at(s)});
  h.apply(here, {.where = ipv4, .name = of, .connected = true, .at = at(s)});
}

void connect(history& h, const address& a, std::uint64_t of, int s) {
  h.apply(here, {.where = a, .name = of, .connected = true, .at = at(s)});
}

}  // namespace

TEST_CASE("history: a name's family that failed is put last, and tried again a minute later",
          "[history][SORT-5]") {
  history h(seconds(60));
  CHECK_FALSE(h.is_demoted(here, first, name, at(99)));
  lose(h, first, name, 100);
  CHECK(h.is_demoted(here, first, name, at(100)));
  CHECK(h.is_demoted(here, second, name, at(159)));  // its other addresses too
  CHECK_FALSE(h.is_demoted(here, second, name, at(160)));
  CHECK_FALSE(h.is_demoted(here, ipv4, name, at(100)));
  CHECK_FALSE(h.is_demoted(here, second, other_name, at(100)));  // one server may be broken
}

TEST_CASE("history: when a name's turn comes, the address that failed stands back once more",
          "[history][SORT-5]") {
  history h(seconds(60));
  lose(h, first, name, 100);
  CHECK(h.is_demoted(here, first, name, at(219)));
  CHECK_FALSE(h.is_demoted(here, first, name, at(220)));
}

TEST_CASE("history: two names in a row speak for the family", "[history][SORT-5]") {
  history h(seconds(60));
  const address third = ip("2001:db8::3");
  lose(h, first, name, 100);
  lose(h, first, name, 161);  // the same name again does not
  CHECK_FALSE(h.is_demoted(here, third, hash_of("third.example"), at(161)));
  lose(h, second, other_name, 162);
  CHECK(h.is_demoted(here, third, hash_of("third.example"), at(162)));
  CHECK_FALSE(h.is_demoted(here, ipv4, hash_of("third.example"), at(162)));

  SECTION("a success of any name ends it") {
    connect(h, third, hash_of("third.example"), 170);
    CHECK_FALSE(h.is_demoted(here, ip("2001:db8::4"), hash_of("fourth.example"), at(170)));
    CHECK(h.is_demoted(here, second, other_name, at(170)));  // not that of the other name
  }
}

TEST_CASE("history: one race of many addresses speaks for the family once", "[history]") {
  history h(seconds(60));
  h.apply(here, {.where = first, .name = name, .at = at(1)});
  h.apply(here, {.where = second, .name = name, .speaks_for_family = false, .at = at(1)});
  CHECK_FALSE(h.is_demoted(here, ip("2001:db8::3"), other_name, at(1)));
}

TEST_CASE("history: the time doubles up to ten minutes and no further: the bound of convergence",
          "[history][SORT-5]") {
  history h(seconds(60));
  int now = 1000;
  for (const int expected : {60, 120, 240, 480, 600, 600, 600}) {
    lose(h, first, name, now);
    CHECK(h.is_demoted(here, second, name, at(now + expected - 1)));
    CHECK_FALSE(h.is_demoted(here, second, name, at(now + expected)));
    now += expected;
  }
  // The address itself as well: nothing of the family stays behind longer than the family.
  CHECK_FALSE(h.is_demoted(here, first, name, at(now)));
}

TEST_CASE("history: programs that raced at the same time have seen one failure", "[history]") {
  history h(seconds(60));
  for (int i = 0; i < 20; ++i) lose(h, first, name, 100);
  CHECK_FALSE(h.is_demoted(here, second, name, at(160)));
}

TEST_CASE("history: an address that works again is as if it had never failed", "[history]") {
  history h(seconds(60));
  lose(h, first, name, 100);
  CHECK(h.would_clear(here, first, name));
  connect(h, first, name, 130);
  CHECK_FALSE(h.would_clear(here, first, name));
  CHECK_FALSE(h.is_demoted(here, first, name, at(130)));
  lose(h, first, name, 200);
  CHECK_FALSE(h.is_demoted(here, second, name, at(260)));  // the time begins anew
}

TEST_CASE("history: used addresses are those that have won, for ten minutes", "[history][SORT-3]") {
  history h(seconds(60));
  lose(h, first, name, 100);
  CHECK(h.was_used(here, ipv4, at(101)));
  CHECK_FALSE(h.was_used(here, first, at(101)));
  CHECK_FALSE(h.was_used(here, ipv4, at(700)));
}

TEST_CASE("history: kept for each network alone, and for none that cannot be recognised",
          "[history][SORT-4]") {
  history h(seconds(60));
  lose(h, first, name, 100);
  CHECK(h.knows(here));
  CHECK_FALSE(h.knows(elsewhere));
  CHECK_FALSE(h.is_demoted(elsewhere, first, name, at(100)));
  CHECK_FALSE(h.was_used(elsewhere, ipv4, at(100)));
  CHECK_FALSE(h.would_clear(elsewhere, first, name));
  CHECK(h.apply(0, {.where = first, .name = name, .at = at(100)}) == 0);
  CHECK_FALSE(h.knows(0));
}

TEST_CASE("history: what is damaged or from the future is left out", "[history]") {
  history h(seconds(60));
  lose(h, first, name, 100);
  std::vector<history_record> image(h.image().begin(), h.image().end());
  history again(seconds(60));
  again.load(image, at(100));
  CHECK(again.is_demoted(here, first, name, at(100)));
  again.load(image, at(99));
  CHECK_FALSE(again.knows(here));
  // Every single bit counts.
  for (std::size_t byte = 0; byte < sizeof(history_record); ++byte) {
    history_record damaged = image[0];
    std::vector<std::uint8_t> raw(sizeof damaged);
    std::memcpy(raw.data(), &damaged, sizeof damaged);
    raw[byte] ^= 0x10;
    std::memcpy(&damaged, raw.data(), sizeof damaged);
    INFO(byte);
    CHECK_FALSE(is_sound(damaged));
  }
  CHECK_FALSE(is_sound(history_record{}));
}

TEST_CASE("history: a full table gives up what has not changed for the longest time", "[history]") {
  history h(seconds(60));
  for (int i = 0; i < static_cast<int>(max_history_records) + 1; ++i)
    connect(h, ip("192.0.2." + std::to_string(i + 1)), name, 100 + i);
  CHECK_FALSE(h.was_used(here, ip("192.0.2.1"), at(170)));
  CHECK(h.was_used(here, ip("192.0.2.2"), at(170)));
  CHECK(h.was_used(here, ip("192.0.2.64"), at(170)));
}

TEST_CASE("history: what changes nothing is not written", "[history]") {
  history h(seconds(60));
  CHECK(h.apply(here, {.where = first, .name = name, .connected = true, .at = at(1)}) != 0);
  CHECK_FALSE(h.would_clear(here, first, name));
}

}  // namespace happy
