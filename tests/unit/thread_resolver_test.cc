#include "resolver/thread_resolver.h"

#include <netinet/in.h>
#include <resolv.h>

#include <cstring>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using test::ip;

// While it lives, libc's state of this thread is what a resolv.conf with one nameserver makes it.
class one_nameserver {
 public:
  one_nameserver() : before_(_res) {
    std::memset(&_res, 0, sizeof _res);
    _res.options = RES_INIT | RES_DEFAULT;
    _res.retrans = 5;
    _res.retry = 2;
    _res.ndots = 1;
    _res.nscount = 1;
    _res.nsaddr_list[0].sin_family = AF_INET;
    _res.nsaddr_list[0].sin_port = htons(53);
    inet_pton(AF_INET, "192.0.2.1", &_res.nsaddr_list[0].sin_addr);
  }
  ~one_nameserver() { _res = before_; }
  one_nameserver(const one_nameserver&) = delete;
  one_nameserver& operator=(const one_nameserver&) = delete;

 private:
  struct __res_state before_;
};

}  // namespace

TEST_CASE("thread_resolver: what a program writes into _res is noticed", "[thread_resolver]") {
  const one_nameserver state;
  resolver_config config;
  config.nameservers.push_back(ip("192.0.2.1"));
  CHECK(thread_resolver_agrees(config));
  SECTION("an option") { _res.options |= RES_USEVC; }
  SECTION("a time-out") { _res.retrans = 1; }
  SECTION("a nameserver") { inet_pton(AF_INET, "192.0.2.2", &_res.nsaddr_list[0].sin_addr); }
  SECTION("another port") { _res.nsaddr_list[0].sin_port = htons(5353); }
  SECTION("none") { _res.nscount = 0; }
  CHECK_FALSE(thread_resolver_agrees(config));
}

TEST_CASE(
    "thread_resolver: what libc writes there when an answer is lost is no wish of the program",
    "[thread_resolver]") {
  const one_nameserver state;
  resolver_config config;
  config.nameservers.push_back(ip("192.0.2.1"));
  _res.options |= RES_SNGLKUP | RES_SNGLKUPREOP;
  CHECK(thread_resolver_agrees(config));
}

}  // namespace happy
