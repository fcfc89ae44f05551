#include "shim/config.h"

#include <cstring>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace {

happy::environment read(std::initializer_list<const char*> variables) {
  std::vector<const char*> list(variables);
  list.push_back(nullptr);
  return happy::read_environment(list.data());
}

bool same(const happy_settings& one, const happy_settings& other) {
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): both begin as zeros, padding too
  return std::memcmp(&one, &other, sizeof one) == 0;
}

}  // namespace

TEST_CASE("config: every default is within its own range, every text is there",
          "[config][CONFIG-1]") {
  std::set<std::string> names;
  for (const happy::knob& k : happy::knobs()) {
    INFO(k.name);
    CHECK(names.insert(k.name).second);
    CHECK(std::strncmp(k.name, "HAPPY_", 6) == 0);
    CHECK(k.help[0] != 0);
    const bool has_field = k.kind == happy::knob_kind::number || k.kind == happy::knob_kind::choice;
    CHECK((k.field != nullptr) == has_field);
    CHECK((k.choices[0] != 0) == (k.kind == happy::knob_kind::choice));
    CHECK(k.minimum <= k.fallback);
    CHECK(k.fallback <= k.maximum);
  }
  CHECK(read({}).refused == 0);
}

TEST_CASE("config: the specification's recommended values are the defaults", "[config][CONFIG-1]") {
  const happy_settings d = happy::default_settings();
  CHECK(d.resolution_delay_ms == 50);
  CHECK(d.connection_attempt_delay_ms == 250);
  CHECK(d.minimum_connection_attempt_delay_ms == 100);
  CHECK(d.maximum_connection_attempt_delay_ms == 2000);
  CHECK(d.last_resort_synthesis_delay_ms == 2000);
  CHECK(d.preferred_address_family_count == 1);
  CHECK(d.partial == 1);
  CHECK((d.disable == 0 && d.force == 0 && d.trace == 0));
}

TEST_CASE("config: every number is taken at both ends of its range, and refused beyond",
          "[config]") {
  for (const happy::knob& k : happy::knobs()) {
    if (k.kind != happy::knob_kind::number) continue;
    const std::string name = std::string(k.name) + "=";
    for (const int good : {k.minimum, k.maximum}) {
      const std::string variable = name + std::to_string(good);
      INFO(variable);
      // The delays must rise, so all three are given the value.
      std::vector<std::string> all{variable};
      for (const auto field : happy::rising_fields) {
        if (k.floor[0] != 0)
          all.push_back(std::string(happy::knob_of(field).name) + "=" + std::to_string(good));
      }
      std::vector<const char*> variables;
      for (const std::string& v : all) variables.push_back(v.c_str());
      variables.push_back(nullptr);
      const happy::environment e = happy::read_environment(variables.data());
      CHECK(e.refused == 0);
      CHECK(e.settings.*k.field == good);
    }
    for (const std::string& bad : {std::to_string(k.minimum - 1), std::to_string(k.maximum + 1)}) {
      const std::string variable = name + bad;
      INFO(variable);
      const happy::environment e = read({variable.c_str()});
      CHECK(e.refused == 1);
      CHECK(e.first_refused == variable);
      CHECK(same(e.settings, happy::default_settings()));
    }
  }
}

TEST_CASE("config: less than 10 ms between attempts is refused", "[config][ATTEMPT-5]") {
  // "... configuration outside the bounds is refused with a clear error."
  const happy::environment e =
      read({"HAPPY_CONNECTION_ATTEMPT_DELAY_MS=9", "HAPPY_MINIMUM_CONNECTION_ATTEMPT_DELAY_MS=9",
            "HAPPY_MAXIMUM_CONNECTION_ATTEMPT_DELAY_MS=9"});
  CHECK(e.refused == 3);
  CHECK(e.settings.connection_attempt_delay_ms == 250);
  CHECK(e.settings.minimum_connection_attempt_delay_ms == 100);
  CHECK(e.settings.maximum_connection_attempt_delay_ms == 2000);
}

TEST_CASE("config: delays that contradict each other are all refused", "[config][ATTEMPT-5]") {
  for (const char* alone :
       {"HAPPY_CONNECTION_ATTEMPT_DELAY_MS=99", "HAPPY_CONNECTION_ATTEMPT_DELAY_MS=2001",
        "HAPPY_MINIMUM_CONNECTION_ATTEMPT_DELAY_MS=251",
        "HAPPY_MAXIMUM_CONNECTION_ATTEMPT_DELAY_MS=249"}) {
    INFO(alone);
    const happy::environment e = read({alone});
    CHECK(e.refused == 1);
    CHECK(same(e.settings, happy::default_settings()));
  }
  CHECK(
      read({"HAPPY_CONNECTION_ATTEMPT_DELAY_MS=99", "HAPPY_MINIMUM_CONNECTION_ATTEMPT_DELAY_MS=99"})
          .refused == 0);
}

TEST_CASE("config: what is no number", "[config]") {
  for (const char* text : {"x", "5x", "x5", "-5", "+5", " 5", "5 ", "0x5", "5.0", "1e2",
                           "1234567890", "99999999999999999999", "\xff"}) {
    const std::string variable = std::string("HAPPY_RESOLUTION_DELAY_MS=") + text;
    INFO(variable);
    const happy::environment e = read({variable.c_str()});
    CHECK(e.refused == 1);
    CHECK(e.settings.resolution_delay_ms == 50);
  }
  CHECK(read({"HAPPY_RESOLUTION_DELAY_MS=000000070"}).settings.resolution_delay_ms == 70);
}

TEST_CASE("config: an empty value is none", "[config]") {
  for (const happy::knob& k : happy::knobs()) {
    const std::string variable = std::string(k.name) + "=";
    const happy::environment e = read({variable.c_str()});
    INFO(variable);
    CHECK(e.refused == 0);
    CHECK(same(e.settings, happy::default_settings()));
  }
}

TEST_CASE("config: words", "[config]") {
  CHECK(read({"HAPPY_FORCE=swap"}).settings.force == HAPPY_FORCE_SWAP);
  CHECK(read({"HAPPY_FORCE=fail:dup3,swap,swap"}).settings.force ==
        (HAPPY_FORCE_SWAP | HAPPY_FORCE_FAIL_DUP3));
  std::uint32_t seen = 0;
  for (const happy::force_word& w : happy::force_words()) {
    const std::string variable = std::string("HAPPY_FORCE=") + w.name;
    CHECK(read({variable.c_str()}).settings.force == w.bit);
    CHECK((seen & w.bit) == 0);
    seen |= w.bit;
  }
  for (const char* bad :
       {"swa", "swapp", "fail", "swap,", ",swap", "swap,,swap", "swap fail:dup3", "SWAP", ","}) {
    const std::string variable = std::string("HAPPY_FORCE=") + bad;
    INFO(variable);
    const happy::environment e = read({variable.c_str()});
    CHECK(e.refused == 1);
    CHECK(e.settings.force == 0);
  }
}

TEST_CASE("config: NAT64 prefixes", "[config][V6ONLY-6]") {
  for (const char* good : {"none", "64:ff9b::/96", "2001:db8::/32,2001:db8:64::/96"}) {
    INFO(good);
    const std::string variable = std::string("HAPPY_PREF64=") + good;
    const happy::environment e = read({variable.c_str()});
    CHECK(e.refused == 0);
    REQUIRE(e.pref64 != nullptr);
    CHECK(std::string(e.pref64) == good);
  }
  for (const char* bad :
       {"all", "none,64:ff9b::/96", "64:ff9b::", "64:ff9b::/95", "64:ff9b::/961", "192.0.2.0/96",
        ",", "64:ff9b::/96,", "/96", "64:ff9b::/96 ", ":::/96", "::/96", "fe80::/64", "ff00::/96",
        "64:ff9b::1/96", "64:ff9b::/96,,2001:db8::/96", "64:ff9b::/96,64:FF9B::/96",
        "1::/96,2::/96,3::/96,4::/96,5::/96,6::/96,7::/96,8::/96,9::/96"}) {
    INFO(bad);
    const std::string variable = std::string("HAPPY_PREF64=") + bad;
    const happy::environment e = read({variable.c_str()});
    CHECK(e.refused == 1);
    CHECK(e.pref64 == nullptr);
  }
}

TEST_CASE("config: choices", "[config][CONFIG-1]") {
  CHECK(happy::default_settings().profile == 0);
  CHECK(read({"HAPPY_PROFILE=standard"}).settings.profile == 0);
  CHECK(read({"HAPPY_PROFILE=fast"}).settings.profile == 1);
  CHECK(read({"HAPPY_PROFILE=v2"}).settings.profile == 2);
  for (const char* bad : {"HAPPY_PROFILE=fas", "HAPPY_PROFILE=fastt", "HAPPY_PROFILE=fast v2",
                          "HAPPY_PROFILE= ", "HAPPY_PROFILE=1"}) {
    INFO(bad);
    const happy::environment e = read({bad});
    CHECK(e.refused == 1);
    CHECK(e.settings.profile == 0);
  }
}

TEST_CASE("config: trace and disable", "[config]") {
  const happy::environment e = read({"HAPPY_TRACE=/tmp/trace", "HAPPY_DISABLE=1"});
  CHECK(std::string(e.trace_target) == "/tmp/trace");
  CHECK(e.settings.trace == 1);
  CHECK(e.disabled);
  CHECK(read({"HAPPY_TRACE="}).trace_target == nullptr);
  CHECK_FALSE(read({"HAPPY_DISABLE=0"}).disabled);
  CHECK_FALSE(read({"HAPPY_DISABLE=yes"}).disabled);
}

TEST_CASE("config: other variables are left alone", "[config]") {
  const happy::environment e =
      read({"", "H", "HAPPY", "HAPPY_", "HAPPY_RESOLUTION_DELAY_MS", "=x", "XHAPPY_DISABLE=1",
            "HAPPY_DISABLED=7", "HAPPY_RESOLUTION_DELAY_MS_=7"});
  CHECK(e.refused == 0);
  CHECK(same(e.settings, happy::default_settings()));
}

TEST_CASE("config: the first refused value is kept, cut off", "[config]") {
  const std::string lengthy = "HAPPY_FORCE=" + std::string(1000, 'x');
  const happy::environment e = read({lengthy.c_str(), "HAPPY_PARTIAL=2"});
  CHECK(e.refused == 2);
  CHECK(std::strlen(e.first_refused) == sizeof e.first_refused - 1);
  CHECK(lengthy.compare(0, sizeof e.first_refused - 1, e.first_refused) == 0);
}

TEST_CASE("config: HAPPY_SRV lists services by name, or by port, too", "[config][srv]") {
  const happy_settings defaults = happy::default_settings();
  CHECK(defaults.srv[0].name == std::string("xmpp-client"));
  CHECK(defaults.srv[1].name == std::string("xmpp-server"));
  CHECK(defaults.srv[2].name[0] == 0);

  const happy_settings listed = read({"HAPPY_SRV=imap,xmpp-client=5222"}).settings;
  CHECK(listed.srv[0].name == std::string("imap"));
  CHECK(listed.srv[0].port == 0);
  CHECK(listed.srv[1].name == std::string("xmpp-client"));
  CHECK(listed.srv[1].port == 5222);
  CHECK(listed.srv[2].name[0] == 0);
  CHECK(read({"HAPPY_SRV=none"}).settings.srv[0].name[0] == 0);

  for (const char* bad : {"HAPPY_SRV=,", "HAPPY_SRV=imap,", "HAPPY_SRV=imap=", "HAPPY_SRV=imap=0",
                          "HAPPY_SRV=imap=65536", "HAPPY_SRV=_imap", "HAPPY_SRV=IMAP",
                          "HAPPY_SRV=a-name-of-16-char", "HAPPY_SRV=a,b,c,d,e,f,g,h,i"}) {
    INFO(bad);
    const happy::environment e = read({bad});
    CHECK(e.refused == 1);
    CHECK(same(e.settings, defaults));
  }
  CHECK(read({"HAPPY_SRV=a,b,c,d,e,f,g,h"}).refused == 0);
}
