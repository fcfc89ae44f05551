#include "resolver/connectivity.h"

#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using test::with_functions;

time_t now_s;
int sockets;

}  // namespace

TEST_CASE("connectivity: which family is preferred is asked once a second", "[connectivity]") {
  happy_real functions = test::libc_functions();
  functions.clock_gettime = [](clockid_t, timespec* out) {
    *out = {.tv_sec = now_s, .tv_nsec = 0};
    return 0;
  };
  functions.socket = [](int domain, int type, int protocol) {
    ++sockets;
    return ::socket(domain, type, protocol);
  };
  with_functions use(functions);
  now_s = 1'000'000'000;
  const family first = preferred_family();
  const int asked_with = sockets;
  CHECK(asked_with > 0);
  CHECK(preferred_family() == first);
  CHECK(sockets == asked_with);
  now_s += 1;
  CHECK(preferred_family() == first);
  CHECK(sockets == 2 * asked_with);
  now_s -= 500'000'000;  // never, but what is kept then is not kept for years
  CHECK(preferred_family() == first);
  CHECK(sockets == 3 * asked_with);
}

}  // namespace happy
