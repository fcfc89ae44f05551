#include "resolver/nameserver_turns.h"

#include "resolver/nameserver_health.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using kind = nameserver_turns::action::kind;
using test::ip;

time_point at(int ms) { return time_point(std::chrono::seconds(1000) + milliseconds(ms)); }

// The nameservers asked at this moment, as digits, and then what the machine wants: '.' to wait, '!' over.
std::string asked(nameserver_turns& turns, int ms, int* until_ms = nullptr) {
  std::string text;
  for (;;) {
    const nameserver_turns::action next = turns.poll(at(ms));
    if (next.what == kind::ask) text += static_cast<char>('0' + next.which);
    if (next.what == kind::forget) text += 'f';
    if (next.what == kind::over) return text + '!';
    if (next.what == kind::wait) {
      if (until_ms != nullptr)
        *until_ms = static_cast<int>(std::chrono::round<milliseconds>(next.until - at(0)).count());
      return text + '.';
    }
  }
}

}  // namespace

TEST_CASE("nameserver_turns: a silent one is overtaken, never asked twice in a round",
          "[nameserver_turns][SERVER-1][SERVER-2]") {
  nameserver_turns turns({.nameservers = 4, .rounds = 2, .round = milliseconds(5000)});
  int until = 0;
  CHECK(asked(turns, 0, &until) == "0.");
  CHECK(until == 300);
  CHECK(asked(turns, 299) == ".");
  CHECK(asked(turns, 300) == "1.");
  CHECK(asked(turns, 600) == "2.");
  CHECK(asked(turns, 900, &until) == "3.");
  CHECK(until == 5000);
  CHECK(asked(turns, 4999) == ".");
  CHECK(asked(turns, 5000) == "f0.");
  CHECK(asked(turns, 5300) == "1.");
  CHECK(asked(turns, 5600) == "2.");
  CHECK(asked(turns, 5900) == "3.");
  CHECK(asked(turns, 10000) == "f!");
  CHECK(asked(turns, 20000) == "!");
  CHECK(turns.was_silent());
}

TEST_CASE("nameserver_turns: after a failure the next is asked at once", "[nameserver_turns]") {
  nameserver_turns turns({.nameservers = 2, .rounds = 2, .round = milliseconds(5000)});
  CHECK(asked(turns, 0) == "0.");
  turns.failed();
  CHECK(asked(turns, 10) == "1.");
  turns.failed();
  CHECK(asked(turns, 20) == "0.");  // the next round does not wait for the end of the first
  turns.failed();
  CHECK(asked(turns, 30) == "1.");
  turns.failed();
  CHECK(asked(turns, 40) == "!");
  CHECK_FALSE(turns.was_silent());
}

TEST_CASE("nameserver_turns: a failure beside a silent one counts too", "[nameserver_turns]") {
  nameserver_turns turns({.nameservers = 3, .rounds = 1, .round = milliseconds(1000)});
  CHECK(asked(turns, 0) == "0.");
  CHECK(asked(turns, 300) == "1.");
  turns.failed();
  CHECK(asked(turns, 310) == "2.");
  turns.failed();
  CHECK(asked(turns, 320) == ".");  // the first may still answer
  CHECK(asked(turns, 1000) == "f!");
}

TEST_CASE("nameserver_health: the overtaken one is penalised for a while",
          "[nameserver_health][SERVER-1]") {
  nameserver_health health;
  const auto one = nameserver_health::key_of(ip("192.0.2.1"), false);
  const auto with_edns = nameserver_health::key_of(ip("192.0.2.1"), true);
  CHECK_FALSE(health.is_penalised(one, at(0)));
  health.overtaken(one, at(0), at(300));
  CHECK(health.is_penalised(one, at(301)));
  CHECK_FALSE(health.is_penalised(with_edns, at(301)));
  CHECK(health.is_penalised(one, at(300) + nameserver_penalty - milliseconds(1)));
  CHECK_FALSE(health.is_penalised(one, at(300) + nameserver_penalty));
}

TEST_CASE("nameserver_health: an answer clears it, and speaks for what was asked before",
          "[nameserver_health][SERVER-1]") {
  nameserver_health health;
  const auto key = nameserver_health::key_of(ip("2001:db8::53"), false);
  health.overtaken(key, at(0), at(300));
  health.answered(key, at(400));
  CHECK_FALSE(health.is_penalised(key, at(401)));
  health.overtaken(key, at(350), at(700));  // it answered another question meanwhile
  CHECK_FALSE(health.is_penalised(key, at(701)));
  health.overtaken(key, at(500), at(800));
  CHECK(health.is_penalised(key, at(801)));
}

}  // namespace happy
