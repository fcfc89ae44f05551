// The race across the priorities of SRV records, each a group, on virtual time.

#include "tests/support/catch.h"
#include "tests/support/race_script.h"

namespace happy {

TEST_CASE("srv: a group begins when every attempt of the groups before it has failed",
          "[race][XMPP-2]") {
  // "Only after all connection attempts for all target hosts in the first priority group are exhausted,
  // target hosts for the subsequent priority group are processed."
  CHECK(test::run_race_script(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 || 2001:db8::2 192.0.2.2 || 192.0.2.3
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
    300 < refused 2001:db8::1
   2000 < refused 192.0.2.1
   2000 > connect 2001:db8::2
   2250 > connect 192.0.2.2
   2300 < refused 192.0.2.2
   2400 < refused 2001:db8::2
   2400 > connect 192.0.2.3
   2500 < connected 192.0.2.3
   2500 > won 192.0.2.3
  )") == "");
}

TEST_CASE("srv: a silent group holds the next one back for ten seconds after its last attempt",
          "[race][XMPP-2]") {
  CHECK(test::run_race_script(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 || 2001:db8::2 192.0.2.2
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
  10250 > connect 2001:db8::2
  10500 > connect 192.0.2.2
  10600 < connected 192.0.2.1
  10600 > won 192.0.2.1
  )") == "");
}

TEST_CASE("srv: while the first group is alive the second stays untouched", "[race][XMPP-2]") {
  race_timing timing;
  timing.group_patience = std::chrono::seconds(2);
  CHECK(test::run_race_script(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 || 2001:db8::2
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
   2200 < connected 192.0.2.1
   2200 > won 192.0.2.1
  )",
                              timing) == "");
}

TEST_CASE("srv: a program that gives up in time sees the second group tried before",
          "[race][XMPP-2]") {
  CHECK(test::run_race_script(R"(
      0 < deadline 4000
      0 < endpoints 2001:db8::1 192.0.2.1 || 2001:db8::2
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
   2125 > connect 2001:db8::2
   2200 < connected 2001:db8::2
   2200 > won 2001:db8::2
  )") == "");
}

TEST_CASE("srv: an address that comes late to the first group goes before the second",
          "[race][XMPP-2][CHANGE-1]") {
  CHECK(test::run_race_script(R"(
      0 < endpoints 2001:db8::1 || 192.0.2.2 ...
      0 > connect 2001:db8::1
   1000 < endpoints 2001:db8::1 192.0.2.1 || 192.0.2.2
   1000 > connect 192.0.2.1
   1100 < refused 2001:db8::1
   1200 < refused 192.0.2.1
   1200 > connect 192.0.2.2
   1300 < refused 192.0.2.2
   1300 > lost
  )") == "");
}

}  // namespace happy
