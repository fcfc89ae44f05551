#include "resolver/nsswitch.h"

#include "tests/support/catch.h"

namespace happy {
namespace {

using namespace std::string_literals;

std::string modules(const std::string& text) {
  const auto services = parse_nsswitch(text);
  if (!services) return "rejected";
  std::string list;
  for (const name_service& s : *services) list += (list.empty() ? "" : " ") + s.module;
  return list;
}

name_service first(const std::string& services) {
  const auto parsed = parse_nsswitch("hosts: " + services + "\n");
  REQUIRE(parsed.has_value());
  REQUIRE_FALSE(parsed->empty());
  return parsed->front();
}

}  // namespace

TEST_CASE("nsswitch: the hosts line", "[nsswitch]") {
  CHECK(modules("passwd: files\nhosts: files dns\nnetworks: files\n") == "files dns");
  CHECK(modules("hosts:\t\tfiles mdns4_minimal [NOTFOUND=return] dns\n") ==
        "files mdns4_minimal dns");
  CHECK(modules("  hosts : files dns\n") == "files dns");
  CHECK(modules("hosts files dns\n") == "files dns");
  CHECK(modules("hosts:files dns\n") == "files dns");
  CHECK(modules("hosts: files[NOTFOUND=continue]dns\n") == "files dns");
  CHECK(modules("hosts: files dns # comment\n") == "files dns # comment");
  CHECK(modules("hosts: files dns\r\n") == "files dns");
}

TEST_CASE("nsswitch: the last hosts line counts", "[nsswitch]") {
  CHECK(modules("hosts: files\nhosts: dns\n") == "dns");
  CHECK(modules("hosts: files\nhosts:\n") == "");
}

TEST_CASE("nsswitch: without a hosts line it is glibc's default", "[nsswitch]") {
  CHECK(modules("") == "files dns");
  CHECK(modules("# hosts: nis\n#hosts: nis\npasswd: files\n") == "files dns");
  CHECK(modules("Hosts: nis\n") == "files dns");
  CHECK(modules("hostsx: nis\n") == "files dns");
  CHECK(modules("hosts\n") == "files dns");
}

TEST_CASE("nsswitch: a last hosts line without its newline is not judged", "[nsswitch]") {
  CHECK(modules("hosts: files dns") == "rejected");
  CHECK(modules("hosts: files dns\npasswd: files") == "files dns");
}

TEST_CASE("nsswitch: actions", "[nsswitch]") {
  const name_service plain = first("dns");
  CHECK(plain.on(lookup_status::success) == lookup_action::stop);
  CHECK(plain.on(lookup_status::not_found) == lookup_action::go_on);
  CHECK(plain.on(lookup_status::unavailable) == lookup_action::go_on);
  CHECK(plain.on(lookup_status::try_again) == lookup_action::go_on);

  CHECK(first("x [NOTFOUND=return]").on(lookup_status::not_found) == lookup_action::stop);
  CHECK(first("x [ notfound = Return ]").on(lookup_status::not_found) == lookup_action::stop);
  const name_service two = first("x [UNAVAIL=return TRYAGAIN=merge]");
  CHECK(two.on(lookup_status::unavailable) == lookup_action::stop);
  CHECK(two.on(lookup_status::try_again) == lookup_action::merge);

  const name_service others = first("x [!UNAVAIL=return]");
  CHECK(others.on(lookup_status::unavailable) == lookup_action::go_on);
  CHECK(others.on(lookup_status::not_found) == lookup_action::stop);
  CHECK(others.on(lookup_status::success) == lookup_action::stop);
}

TEST_CASE("nsswitch: what glibc rejects is rejected", "[nsswitch]") {
  for (const char* bad :
       {"x [NOTFOUND]", "x [NOTFOUND=]", "x [=return]", "x [NOTFOUND=return", "x [", "x []",
        "x [NEVER=return]", "x [NOTFOUND=stop]", "x [NOTFOUND return]", "x [!]"}) {
    INFO(bad);
    CHECK(modules("hosts: "s + bad + "\n") == "rejected");
  }
}

TEST_CASE("nsswitch: hostile texts are read in peace", "[nsswitch]") {
  CHECK(modules("hosts: files\0dns\n"s) == "files");
  CHECK(modules("\0hosts: nis\n"s) == "files dns");
  CHECK(modules("hosts: " + std::string(1 << 20, '[') + "\n") == "");
  CHECK(modules("hosts: x " + std::string(1 << 20, '[') + "\n") == "rejected");
  std::string many = "hosts:";
  for (int i = 0; i < 100000; ++i) many += " x";
  CHECK(modules(many + "\n") == "rejected");
  CHECK(modules(std::string(1 << 20, ' ')) == "files dns");
}

}  // namespace happy
