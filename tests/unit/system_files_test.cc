#include "resolver/system_files.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using test::ip;
using test::libc_functions;
using test::open_descriptors;
using test::with_functions;

// A root directory of the test's own.
class scratch_root {
 public:
  scratch_root() {
    char pattern[] = "/tmp/happy-test-XXXXXX";
    path_ = mkdtemp(pattern);
    std::filesystem::create_directory(path_ + "/etc");
  }
  ~scratch_root() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/etc/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }

 private:
  std::string path_;
};

address first_nameserver(const system_snapshot& files) {
  return std::get<std::shared_ptr<const resolver_config>>(files.resolver)->nameservers[0];
}

int no_open(const char*, int, ...) {
  errno = EMFILE;
  return -1;
}

int opens;

int counted_open(const char* path, int flags, ...) {
  ++opens;
  return ::open(path, flags);
}

decline_reason resolver_problem(const system_snapshot& files) {
  return std::get<decline_reason>(files.resolver);
}

}  // namespace

TEST_CASE("system_files: missing files are glibc's defaults", "[system_files]") {
  with_functions functions;
  const scratch_root root;
  system_files files(root.path());
  const auto snapshot = files.current();
  CHECK(first_nameserver(*snapshot) == ip("127.0.0.1"));
  CHECK(std::get<std::vector<name_service>>(snapshot->services).size() == 2);
  CHECK_FALSE(snapshot->gai_conf_reloads);
  CHECK_FALSE(snapshot->hosts_unreadable);
  CHECK(snapshot->hosts->empty());
}

TEST_CASE("system_files: what does not change is opened and read once", "[system_files]") {
  static int reads;
  happy_real functions = libc_functions();
  functions.open = counted_open;
  functions.read = [](int fd, void* data, size_t size) {
    ++reads;
    return ::read(fd, data, size);
  };
  with_functions use(functions);
  const scratch_root root;
  root.write("resolv.conf", "nameserver 192.0.2.1\n");
  system_files files(root.path());
  const int before = open_descriptors();
  const auto first = files.current();
  reads = opens = 0;
  CHECK(files.current() == first);
  CHECK(reads == 0);
  CHECK(opens == 0);
  CHECK(open_descriptors() == before);
}

TEST_CASE("system_files: a changed, replaced, new or removed file is a new snapshot",
          "[system_files]") {
  with_functions functions;
  const scratch_root root;
  root.write("resolv.conf", "nameserver 192.0.2.1\n");
  system_files files(root.path());
  const auto first = files.current();
  CHECK(first_nameserver(*first) == ip("192.0.2.1"));

  root.write("resolv.conf", "nameserver 192.0.2.200\n");
  const auto second = files.current();
  CHECK(first_nameserver(*second) == ip("192.0.2.200"));
  CHECK(second->generation != first->generation);

  root.write("next", "nameserver 192.0.2.201\n");  // same size
  std::filesystem::rename(root.file("next"), root.file("resolv.conf"));
  CHECK(first_nameserver(*files.current()) == ip("192.0.2.201"));

  root.write("hosts", "192.0.2.9 www\n");
  CHECK(files.current()->hosts->mention("www"));

  std::filesystem::remove(root.file("resolv.conf"));
  CHECK(first_nameserver(*files.current()) == ip("127.0.0.1"));
  CHECK(first_nameserver(*first) == ip("192.0.2.1"));
}

TEST_CASE("system_files: the environment takes part as it was when resolv.conf was read",
          "[system_files]") {
  with_functions functions;
  const scratch_root root;
  root.write("resolv.conf", "nameserver 192.0.2.1\n");
  system_files files(root.path());
  const auto first = files.current();
  CHECK_FALSE(first->host_aliases);
  setenv("HOSTALIASES", "/dev/null", 1);
  setenv("RES_OPTIONS", "single-request", 1);
  const auto second = files.current();
  CHECK(second->host_aliases);
  CHECK(first_nameserver(*second) == ip("192.0.2.1"));
  root.write("resolv.conf", "nameserver 192.0.2.200\n");
  const auto third = files.current();
  CHECK(resolver_problem(*third) == decline_reason::resolver_option);
  unsetenv("HOSTALIASES");
  unsetenv("RES_OPTIONS");
  const auto fourth = files.current();
  CHECK_FALSE(fourth->host_aliases);
  CHECK(resolver_problem(*fourth) == decline_reason::resolver_option);
}

TEST_CASE("system_files: what is no regular file, or too long, is unreadable", "[system_files]") {
  with_functions functions;
  const scratch_root root;
  SECTION("a directory") { std::filesystem::create_directory(root.file("resolv.conf")); }
  SECTION("a FIFO, without waiting for a writer") {
    REQUIRE(mkfifo(root.file("resolv.conf").c_str(), 0600) == 0);
  }
  SECTION("a device") { std::filesystem::create_symlink("/dev/zero", root.file("resolv.conf")); }
  SECTION("a large file") { root.write("resolv.conf", std::string(1 << 20, '\n')); }
  SECTION("a file that says it is empty and is not") {
    std::filesystem::create_symlink("/proc/self/status", root.file("resolv.conf"));
  }
  system_files files(root.path());
  const int before = open_descriptors();
  CHECK(resolver_problem(*files.current()) == decline_reason::file_unreadable);
  CHECK(open_descriptors() == before);

  std::filesystem::remove(root.file("resolv.conf"));
  CHECK(first_nameserver(*files.current()) == ip("127.0.0.1"));
}

TEST_CASE("system_files: a link to nowhere or in circles counts as missing, as in glibc",
          "[system_files]") {
  with_functions functions;
  const scratch_root root;
  std::filesystem::create_symlink(root.file("resolv.conf"), root.file("resolv.conf"));
  std::filesystem::create_symlink("/nonexistent", root.file("nsswitch.conf"));
  system_files files(root.path());
  const auto snapshot = files.current();
  CHECK(first_nameserver(*snapshot) == ip("127.0.0.1"));
  CHECK(std::get<std::vector<name_service>>(snapshot->services).size() == 2);
}

TEST_CASE("system_files: failing system calls decline until they work again", "[system_files]") {
  const scratch_root root;
  root.write("resolv.conf", "nameserver 192.0.2.1\n");
  happy_real functions = libc_functions();
  SECTION("open") { functions.open = no_open; }
  SECTION("fstat") {
    functions.fstat = [](int, struct stat*) {
      errno = EIO;
      return -1;
    };
  }
  SECTION("read") {
    functions.read = [](int, void*, size_t) -> ssize_t {
      errno = EIO;
      return -1;
    };
  }
  system_files files(root.path());
  const int before = open_descriptors();
  {
    with_functions use(functions);
    errno = ENOTTY;
    CHECK(resolver_problem(*files.current()) == decline_reason::file_unreadable);
    CHECK(errno == ENOTTY);
    files.current();
  }
  with_functions use;
  CHECK(first_nameserver(*files.current()) == ip("192.0.2.1"));
  CHECK(open_descriptors() == before);
}

TEST_CASE("system_files: a read that is interrupted or short goes on", "[system_files]") {
  static int calls;
  calls = 0;
  happy_real functions = libc_functions();
  functions.read = [](int fd, void* data, size_t) -> ssize_t {
    if (++calls % 2 == 0) {
      errno = EINTR;
      return -1;
    }
    return ::read(fd, data, 1);
  };
  with_functions use(functions);
  const scratch_root root;
  root.write("resolv.conf", "nameserver 192.0.2.1\n");
  system_files files(root.path());
  CHECK(first_nameserver(*files.current()) == ip("192.0.2.1"));
}

TEST_CASE("system_files: a gai.conf that is to be read again is seen", "[system_files]") {
  with_functions functions;
  const scratch_root root;
  root.write("gai.conf", "# nothing\n");
  system_files files(root.path());
  CHECK_FALSE(files.current()->gai_conf_reloads);
  root.write("gai.conf", "reload yes\n");
  CHECK(files.current()->gai_conf_reloads);
}

}  // namespace happy
