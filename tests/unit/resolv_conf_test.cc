#include "resolver/resolv_conf.h"

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using test::ip;
using namespace std::string_literals;

resolver_config parsed(const std::string& text, const resolver_environment& environment = {}) {
  auto result = parse_resolv_conf(text, environment);
  REQUIRE(std::holds_alternative<resolver_config>(result));
  return std::get<resolver_config>(result);
}

decline_reason declined(const std::string& text, const resolver_environment& environment = {}) {
  auto result = parse_resolv_conf(text, environment);
  REQUIRE(std::holds_alternative<decline_reason>(result));
  return std::get<decline_reason>(result);
}

std::vector<address> nameservers(const std::string& text) {
  const resolver_config config = parsed(text);
  return {config.nameservers.begin(), config.nameservers.end()};
}

using strings = std::vector<std::string>;
using addresses = std::vector<address>;

}  // namespace

TEST_CASE("resolv_conf: nameservers in the order of the file", "[resolv_conf]") {
  CHECK(nameservers("nameserver 192.0.2.1\nnameserver 2001:db8::1\n") ==
        addresses{ip("192.0.2.1"), ip("2001:db8::1")});
  CHECK(nameservers("nameserver\t192.0.2.1 trailing words\n") == addresses{ip("192.0.2.1")});
  CHECK(nameservers("nameserver 192.0.2.1") == addresses{ip("192.0.2.1")});
  CHECK(nameservers("nameserver 127.1\n") == addresses{ip("127.0.0.1")});
  CHECK(nameservers("nameserver 0x7f000001\n") == addresses{ip("127.0.0.1")});
}

TEST_CASE("resolv_conf: without a nameserver it is this host, as in glibc", "[resolv_conf]") {
  const addresses loopback{ip("127.0.0.1")};
  CHECK(nameservers("") == loopback);
  CHECK(nameservers("# nameserver 192.0.2.1\n;nameserver 192.0.2.1\n") == loopback);
  CHECK(nameservers(" nameserver 192.0.2.1\n") == loopback);
  CHECK(nameservers("nameserver192.0.2.1\n") == loopback);
  CHECK(nameservers("Nameserver 192.0.2.1\n") == loopback);
  CHECK(nameservers("nameserver 192.0.2.1\r\n") == loopback);
  CHECK(nameservers("nameserver 192.0.2.256\n") == loopback);
  CHECK(nameservers("nameserver\n") == loopback);
  CHECK(nameservers("nameserver \n") == loopback);
  CHECK(nameservers("nameserver 192.0.2.1#53\n") == loopback);
  CHECK(nameservers("nameserver eth0%eth0\n") == loopback);
}

TEST_CASE("resolv_conf: more nameservers than glibc's three are kept, up to a bound",
          "[resolv_conf]") {
  std::string text;
  for (int i = 1; i <= 40; ++i) text += "nameserver 192.0.2." + std::to_string(i) + "\n";
  CHECK(nameservers(text).size() == max_nameservers);
}

TEST_CASE("resolv_conf: the scope of a nameserver is an interface or a number", "[resolv_conf]") {
  resolver_environment environment;
  environment.interface_index = [](const char* name) { return name == "eth0"s ? 7u : 0u; };
  const auto scope = [&](const char* text) {
    return parsed("nameserver "s + text + "\n", environment).nameservers[0].scope;
  };
  CHECK(scope("fe80::1%eth0") == 7);
  CHECK(scope("fe80::1%3") == 3);
  CHECK(scope("fe80::1%nosuch") == 0);
  CHECK(scope("fe80::1%3x") == 0);
  CHECK(scope("fe80::1%") == 0);
  CHECK(scope("2001:db8::1%eth0") == 0);
  CHECK(scope("2001:db8::1%5") == 5);
  CHECK(scope("fe80::1") == 0);
}

TEST_CASE("resolv_conf: a round lasts as long as glibc's", "[resolv_conf][SERVER-1]") {
  const auto round_of = [](int nameservers, int timeout_s) {
    std::string text = "options timeout:" + std::to_string(timeout_s) + "\n";
    for (int i = 1; i <= nameservers; ++i) text += "nameserver 192.0.2." + std::to_string(i) + "\n";
    return glibc_round(parsed(text));
  };
  using std::chrono::seconds;
  CHECK(round_of(1, 5) == seconds(5));
  CHECK(round_of(2, 5) == seconds(5 + 5));
  CHECK(round_of(3, 5) == seconds(5 + 3 + 6));
  CHECK(round_of(3, 1) == seconds(1 + 1 + 1));
  CHECK(round_of(9, 5) == round_of(3, 5));
}

TEST_CASE("resolv_conf: options that our queries follow", "[resolv_conf]") {
  CHECK(parsed("options use-vc\n").use_vc);
  CHECK(parsed("options trust-ad\n").trust_ad);
  CHECK(parsed("options no-aaaa\n").no_aaaa);
  CHECK(parsed("options no-tld-query\n").no_tld_query);
  CHECK(parsed("options no_tld_query\n").no_tld_query);
}

TEST_CASE("resolv_conf: the last of search and domain counts", "[resolv_conf]") {
  CHECK(parsed("search a.example b.example\n").search == strings{"a.example", "b.example"});
  CHECK(parsed("domain a.example b.example\n").search == strings{"a.example"});
  CHECK(parsed("search a.example\ndomain b.example\n").search == strings{"b.example"});
  CHECK(parsed("domain b.example\nsearch a.example\n").search == strings{"a.example"});
  CHECK(parsed("search a.example\nsearch\nsearch \n").search == strings{"a.example"});
  CHECK(parsed("search \ta.example\t\tb.example \n").search == strings{"a.example", "b.example"});
}

TEST_CASE("resolv_conf: a search list longer than ours is glibc's business", "[resolv_conf]") {
  std::string line = "search";
  for (std::size_t i = 0; i < max_search_domains; ++i) line += " a.example";
  CHECK(parsed(line + " \n").search.size() == max_search_domains);
  CHECK(declined(line + " b.example\n") == decline_reason::resolver_option);
  CHECK(parsed(line + "\nsearch a.example\n").search.size() == 1);
}

TEST_CASE("resolv_conf: the host's own domain is the default search list", "[resolv_conf]") {
  resolver_environment environment;
  environment.host_name = "host.lan.example";
  CHECK(parsed("", environment).search == strings{"lan.example"});
  CHECK(parsed("search a.example\n", environment).search == strings{"a.example"});
  environment.host_name = "host";
  CHECK(parsed("", environment).search.empty());
}

TEST_CASE("resolv_conf: LOCALDOMAIN overrides file and host, even when empty", "[resolv_conf]") {
  resolver_environment environment;
  environment.host_name = "host.lan.example";
  environment.local_domain = "x.example y.example\nz.example";
  CHECK(parsed("search a.example\n", environment).search == strings{"x.example", "y.example"});
  environment.local_domain = "";
  CHECK(parsed("search a.example\n", environment).search.empty());
}

TEST_CASE("resolv_conf: options and their caps", "[resolv_conf]") {
  const resolver_config defaults = parsed("");
  CHECK(defaults.ndots == 1);
  CHECK(defaults.timeout_s == 5);
  CHECK(defaults.attempts == 2);
  CHECK_FALSE(defaults.rotate);
  CHECK_FALSE(defaults.edns0);

  const resolver_config set =
      parsed("options ndots:3 timeout:7\tattempts:4\noptions rotate edns0 trust-ad\n");
  CHECK(set.ndots == 3);
  CHECK(set.timeout_s == 7);
  CHECK(set.attempts == 4);
  CHECK(set.rotate);
  CHECK(set.edns0);

  const resolver_config large = parsed("options ndots:16 timeout:31 attempts:6\n");
  CHECK(large.ndots == max_ndots);
  CHECK(large.timeout_s == max_timeout_s);
  CHECK(large.attempts == max_attempts);
  CHECK(parsed("options ndots:0\n").ndots == 0);
  CHECK(parsed("options ndots:\n").ndots == 0);
  CHECK(parsed("options timeout:0\n").timeout_s == 1);
}

TEST_CASE("resolv_conf: RES_OPTIONS comes after the file", "[resolv_conf]") {
  resolver_environment environment;
  environment.res_options = "timeout:1 rotate";
  const resolver_config config = parsed("options timeout:9 attempts:3\n", environment);
  CHECK(config.timeout_s == 1);
  CHECK(config.attempts == 3);
  CHECK(config.rotate);
}

TEST_CASE("resolv_conf: options that our queries do not follow are declined", "[resolv_conf]") {
  for (const char* option :
       {"single-request", "inet6", "no-reload", "what-comes-next", "attempts:0", "attempts:x",
        "ndots:-1", "timeout:-1", "ndots", "options"}) {
    INFO(option);
    CHECK(declined(std::string("options ") + option + "\n") == decline_reason::resolver_option);
  }
  CHECK(declined("sortlist 192.0.2.0/24\n") == decline_reason::resolver_option);
}

TEST_CASE("resolv_conf: one port for each question is what we do", "[resolv_conf]") {
  CHECK(parsed("options single-request-reopen timeout:3\n").timeout_s == 3);
}

TEST_CASE("resolv_conf: hostile texts are read in peace", "[resolv_conf]") {
  CHECK(nameservers("nameserver 192.0.2.1\0nameserver 192.0.2.2\n"s) == addresses{ip("192.0.2.1")});
  CHECK(nameservers("\0nameserver 192.0.2.1\nnameserver 192.0.2.2"s) == addresses{ip("192.0.2.2")});
  CHECK(parsed("search a.example\0b.example\n"s).search == strings{"a.example"});
  CHECK(nameservers("nameserver " + std::string(1 << 20, '1') + "\nnameserver 192.0.2.1\n") ==
        addresses{ip("192.0.2.1")});
  std::string domains = "search";
  for (int i = 0; i < 100000; ++i) domains += " d.example";
  CHECK(declined(domains) == decline_reason::resolver_option);
  CHECK(parsed(std::string(1 << 20, '\n')).search.empty());
  CHECK(declined("options timeout:99999999999999999999\n") == decline_reason::resolver_option);
}

}  // namespace happy
