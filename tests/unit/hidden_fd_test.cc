#include "resolver/hidden_fd.h"

#include <sys/resource.h>

#include <vector>

#include <sys/eventfd.h>

#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using test::open_descriptors;
using test::with_functions;

int some_fd() { return ::eventfd(0, EFD_CLOEXEC); }

class with_fd_limit {
 public:
  explicit with_fd_limit(rlim_t soft) {
    getrlimit(RLIMIT_NOFILE, &previous_);
    const rlimit lower{soft, previous_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~with_fd_limit() { setrlimit(RLIMIT_NOFILE, &previous_); }

 private:
  rlimit previous_{};
};

}  // namespace

TEST_CASE("hidden_fd: moved out of the way, close-on-exec, the old number free again",
          "[hidden_fd]") {
  with_functions functions;
  const int before = open_descriptors();
  const int fd = some_fd();
  {
    const auto hidden = hide(unique_fd(fd));
    REQUIRE(hidden.ok());
    CHECK(hidden.value().get() >= first_hidden_fd);
    CHECK((::fcntl(hidden.value().get(), F_GETFD) & FD_CLOEXEC) != 0);
    if (fd < first_hidden_fd) CHECK(::fcntl(fd, F_GETFD) == -1);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("hidden_fd: what is out of the way stays where it is", "[hidden_fd]") {
  with_functions functions;
  const int fd = some_fd();
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, first_hidden_fd + 1);
  ::close(fd);
  const auto hidden = hide(unique_fd(high));
  REQUIRE(hidden.ok());
  CHECK(hidden.value().get() == high);
}

TEST_CASE("hidden_fd: never 255", "[hidden_fd]") {
  with_functions functions;
  const int before = open_descriptors();
  {
    std::vector<result<unique_fd>> held;
    for (int i = 0; i < 300; ++i) {
      held.push_back(hide(unique_fd(some_fd())));
      REQUIRE(held.back().ok());
      CHECK(held.back().value().get() != 255);
    }
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("hidden_fd: refused when too few numbers are left, and nothing stays open",
          "[hidden_fd]") {
  with_functions functions;
  const int before = open_descriptors();
  for (const rlim_t limit : {rlim_t{20}, rlim_t{24}, rlim_t{80}}) {
    const with_fd_limit lower(limit);
    const auto hidden = hide(unique_fd(some_fd()));
    CHECK_FALSE(hidden.ok());
    CHECK(hidden.error() == EMFILE);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("hidden_fd: a number that is not open is refused", "[hidden_fd]") {
  with_functions functions;
  const auto hidden = hide(unique_fd());
  CHECK_FALSE(hidden.ok());
  CHECK(hidden.error() == EBADF);
}

}  // namespace happy
