#include "shim/policy.h"

#include <arpa/inet.h>

#include <random>
#include <string>

#include "tests/support/catch.h"

namespace {

bool is_number(const std::string& text) {
  return happy::judge_lookup(text.c_str(), nullptr) == happy::pass_reason::numeric;
}

// Digits and dots that are no number are no name either: libc has the same answer to them.
bool is_number_to_libc(const std::string& text) {
  in_addr ignored;
  if (text.find_first_not_of("0123456789.") == std::string::npos)
    return !text.empty() && text[0] != '.';
  return text.find(':') != std::string::npos || inet_aton(text.c_str(), &ignored) != 0;
}

}  // namespace

TEST_CASE("policy: what libc takes for an IPv4 number is one", "[policy]") {
  for (const char* text : {"192.0.2.1",
                           "127.1",
                           "1.2.3",
                           "0",
                           "4294967295",
                           "4294967296",
                           "0x7f000001",
                           "0X7F.1",
                           "0377.1",
                           "0400.1",
                           "09.1",
                           "08",
                           "0x",
                           "0xg",
                           "0x.1",
                           "1.2.3.4.",
                           "1.2.3.4.5",
                           "1..2",
                           ".1",
                           "1.",
                           "",
                           " 1.2.3.4",
                           "1.2.3.4 ",
                           "1.2.3.4\tx",
                           "1.2.3.4x",
                           "1.2.3.256",
                           "1.2.65535",
                           "1.2.65536",
                           "1.16777215",
                           "1.16777216",
                           "256.1",
                           "255.255.255.255",
                           "+1.2.3.4",
                           "-1",
                           "1e3",
                           "99999999999999999999",
                           "0x1ffffffff",
                           "037777777777",
                           "040000000000",
                           "example.com",
                           "3com.com",
                           "1.2.3.4\xa0",
                           "a.b",
                           "00x1",
                           "0b1"}) {
    INFO(text);
    CHECK(is_number(text) == is_number_to_libc(text));
  }
}

TEST_CASE("policy: so does any string of the letters of numbers", "[policy]") {
  constexpr char letters[] = "0123456789..xXaf8 \t-g";
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    std::string text(1 + random() % 12, 0);
    for (char& c : text) c = letters[random() % (sizeof letters - 1)];
    if (is_number(text) != is_number_to_libc(text)) FAIL(text);
  }
}
