#include "resolver/remembered.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "resolver/attachment.h"
#include "resolver/history_file.h"
#include "resolver/network.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using std::chrono::seconds;
using test::ip;
using test::with_functions;

constexpr time_point start{seconds(1'000'000)};

// A folder that ends with the test.
class runtime_folder {
 public:
  runtime_folder() { REQUIRE(mkdtemp(path_) != nullptr); }
  ~runtime_folder() {
    keep_history(nullptr, seconds(60));
    ::unlink(file().c_str());
    ::rmdir(path_);
  }
  const char* path() const { return path_; }
  std::string file() const { return std::string(path_) + "/" + history_file_name; }

 private:
  char path_[64] = "/tmp/happy-history-test.XXXXXX";
};

// Sources cannot be made up: it is the network of the host that runs the tests, if it can be recognised.
std::uint64_t this_network() {
  static char scratch[8192];
  return recognise_network(scratch);
}

int questions;
std::int64_t path_age_ms;
std::int64_t address_age_ms;

int tell_path(const happy_netlink_address*, const happy_netlink_address* from,
              happy_netlink_path* out) {
  ++questions;
  *out = {.source = *from, .rtt_us = 80'000, .rtt_variance_us = 10'000, .age_ms = path_age_ms};
  return 0;
}

int tell_network(happy_netlink_network* out) {
  *out = {};
  out->address_count = 1;
  out->addresses[0].where = to_netlink(ip("192.0.2.2"));
  out->addresses[0].age_ms = address_age_ms;
  return 0;
}

happy_netlink made_up_kernel() {
  happy_netlink kernel{};
  kernel.abi_version = HAPPY_NETLINK_ABI_VERSION;
  kernel.read_network = tell_network;
  kernel.find_path = tell_path;
  return kernel;
}

std::vector<candidate> two_candidates() {
  candidate first{.destination = ip("192.0.2.10"), .source = ip("192.0.2.2"), .has_source = true};
  candidate second{.destination = ip("192.0.2.11"), .source = ip("192.0.2.2"), .has_source = true};
  return {first, second};
}

const history_note silent_ipv6{
    .where = ip("2001:db8::1"), .name = 1, .connected = false, .at = start};

// Adds it to what the file holds, in network 7.
bool note(history_file& file, history_image& image, history& h, const history_note& what) {
  return file.update(image, [&](history_image& i) {
    h.load(i.records, start);
    const std::uint64_t changed = h.apply(7, what);
    std::copy(h.image().begin(), h.image().end(), i.records);
    return changed;
  });
}

struct stat status_of(mode_t mode, uid_t owner, off_t size, nlink_t links = 1) {
  struct stat s {};
  s.st_mode = mode;
  s.st_uid = owner;
  s.st_size = size;
  s.st_nlink = links;
  return s;
}

}  // namespace

TEST_CASE("history file: what is written is read, by this process and the next", "[remembered]") {
  with_functions use;
  const runtime_folder folder;
  history_file file;
  REQUIRE(file.set_folder(folder.path()));
  history_image image;
  CHECK_FALSE(file.read(image));
  history h(seconds(60));
  CHECK(note(file, image, h, silent_ipv6));
  history_file other;
  other.set_folder(folder.path());
  CHECK(other.has_changed());
  CHECK_FALSE(other.has_changed());
  REQUIRE(other.read(image));
  history again(seconds(60));
  again.load(image.records, start);
  CHECK(again.is_demoted(7, ip("2001:db8::1"), 1, start));
  CHECK_FALSE(file.has_changed());  // its own change is no news
  // One record more: the others stay.
  CHECK(note(other, image, again,
             {.where = ip("192.0.2.1"), .name = 1, .connected = true, .at = start}));
  REQUIRE(file.read(image));
  h.load(image.records, start);
  CHECK(h.was_used(7, ip("192.0.2.1"), start));
  CHECK(h.is_demoted(7, ip("2001:db8::1"), 1, start));
}

TEST_CASE("history file: no folder is made, and only an absolute one is taken", "[remembered]") {
  with_functions use;
  history_file file;
  CHECK_FALSE(file.set_folder(nullptr));
  CHECK_FALSE(file.set_folder(""));
  CHECK_FALSE(file.set_folder("tmp"));
  CHECK_FALSE(file.set_folder(("/" + std::string(300, 'x')).c_str()));
  REQUIRE(file.set_folder("/tmp/happy-history-test.absent"));
  history_image image;
  CHECK_FALSE(file.update(image, [](history_image&) { return std::uint64_t{1}; }));
  struct stat s;
  CHECK(::stat("/tmp/happy-history-test.absent", &s) != 0);
}

namespace {

// Whether a change is kept by the file: what update() writes is what the next process reads.
bool keeps_changes(const runtime_folder& folder) {
  history_file file;
  file.set_folder(folder.path());
  history_image image;
  history h(seconds(60));
  const bool written = note(file, image, h, silent_ipv6);
  history_file other;
  other.set_folder(folder.path());
  if (!other.read(image)) return false;
  history again(seconds(60));
  again.load(image.records, start);
  return written && again.is_demoted(7, ip("2001:db8::1"), 1, start);
}

void put(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  ::chmod(path.c_str(), 0600);
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("history file: one that has come to harm is replaced", "[remembered]") {
  with_functions use;
  const runtime_folder folder;
  REQUIRE(keeps_changes(folder));
  const std::string good = content_of(folder.file());
  REQUIRE(good.size() == sizeof(history_image));
  for (const std::string& bad :
       {std::string(), std::string("x"), good.substr(1), good.substr(0, 64), good + "x",
        std::string(good.size(), 'x'), std::string(9999, 'x')}) {
    put(folder.file(), bad);
    CAPTURE(bad.size());
    CHECK(keeps_changes(folder));
    CHECK(content_of(folder.file()) == good);
  }
  for (const mode_t mode : {0000, 0200, 0400, 0644, 0660, 0777, 04600}) {
    REQUIRE(::chmod(folder.file().c_str(), mode) == 0);
    CAPTURE(mode);
    CHECK(keeps_changes(folder));
    struct stat s;
    REQUIRE(::stat(folder.file().c_str(), &s) == 0);
    CHECK((s.st_mode & 07777) == 0600);
  }
}

TEST_CASE("history file: whatever the umask, it can be read again", "[remembered]") {
  with_functions use;
  for (const mode_t mask : {0777, 0700, 0277, 0477, 0077, 0000}) {
    const runtime_folder folder;
    const mode_t before = ::umask(mask);
    const bool kept = keeps_changes(folder);
    ::umask(before);
    CAPTURE(mask);
    CHECK(kept);
    struct stat s;
    REQUIRE(::stat(folder.file().c_str(), &s) == 0);
    CHECK((s.st_mode & 07777) == 0600);
  }
}

TEST_CASE("history file: nobody else's file is touched, nor what a link leads to", "[remembered]") {
  with_functions use;
  const runtime_folder folder;
  const std::string elsewhere = std::string(folder.path()) + "/elsewhere";
  put(elsewhere, "somebody's");
  SECTION("a symbolic link") {
    REQUIRE(::symlink(elsewhere.c_str(), folder.file().c_str()) == 0);
    CHECK_FALSE(keeps_changes(folder));
    struct stat s;
    CHECK((::lstat(folder.file().c_str(), &s) == 0 && S_ISLNK(s.st_mode)));
  }
  SECTION("a symbolic link to nothing") {
    REQUIRE(::symlink("nothing", folder.file().c_str()) == 0);
    CHECK_FALSE(keeps_changes(folder));
  }
  SECTION("a second name of the file: it is left to that") {
    REQUIRE(::link(elsewhere.c_str(), folder.file().c_str()) == 0);
    CHECK(keeps_changes(folder));
  }
  SECTION("a folder") {
    REQUIRE(::mkdir(folder.file().c_str(), 0700) == 0);
    CHECK_FALSE(keeps_changes(folder));
    CHECK(::rmdir(folder.file().c_str()) == 0);
  }
  SECTION("another user's") {
    if (::geteuid() != 0) return;
    put(folder.file(), "x");
    REQUIRE(::chown(folder.file().c_str(), 1234, 1234) == 0);
    CHECK_FALSE(keeps_changes(folder));
    CHECK(content_of(folder.file()) == "x");
  }
  CHECK(content_of(elsewhere) == "somebody's");
  ::unlink(elsewhere.c_str());
}

TEST_CASE("history file: it is not written where a file may not be as large", "[remembered]") {
  with_functions use;
  const runtime_folder folder;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const bool kept = keeps_changes(folder);  // a write would end the test by SIGXFSZ
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK_FALSE(kept);
  CHECK(keeps_changes(folder));
}

TEST_CASE("history file: this user's alone, and exactly a page", "[remembered]") {
  constexpr off_t size = sizeof(history_image);
  CHECK(is_history(status_of(S_IFREG | 0600, 5, size), 5));
  CHECK_FALSE(is_history(status_of(S_IFREG | 0600, 6, size), 5));
  CHECK_FALSE(is_history(status_of(S_IFREG | 0640, 5, size), 5));
  CHECK_FALSE(is_history(status_of(S_IFREG | 04600, 5, size), 5));
  CHECK_FALSE(is_history(status_of(S_IFREG | 0400, 5, size), 5));
  CHECK_FALSE(is_history(status_of(S_IFIFO | 0600, 5, size), 5));
  CHECK_FALSE(is_history(status_of(S_IFREG | 0600, 5, size, 2), 5));
  CHECK_FALSE(is_history(status_of(S_IFREG | 0600, 5, size - 1), 5));
  CHECK_FALSE(is_history(status_of(S_IFREG | 0600, 5, 0), 5));
  CHECK(may_keep_history(status_of(S_IFDIR | 0700, 5, 0), 5));
  CHECK(may_keep_history(status_of(S_IFDIR | 0755, 5, 0), 5));
  CHECK_FALSE(may_keep_history(status_of(S_IFDIR | 0770, 5, 0), 5));
  CHECK_FALSE(may_keep_history(status_of(S_IFDIR | 01777, 5, 0), 5));
  CHECK_FALSE(may_keep_history(status_of(S_IFDIR | 0700, 0, 0), 5));
  CHECK_FALSE(may_keep_history(status_of(S_IFREG | 0700, 5, 0), 5));
}

TEST_CASE("remembered: without a file netlink is not asked", "[remembered]") {
  with_functions use;
  const runtime_folder folder;
  questions = 0;
  const happy_netlink kernel = made_up_kernel();
  set_network_table(&kernel);
  keep_history(folder.path(), seconds(60));
  auto list = two_candidates();
  CHECK(recall(list, "name.example", recall_from::all, start).paths == 0);
  CHECK(questions == 0);
  set_network_table(nullptr);
}

TEST_CASE("remembered: with a file that knows this network, round-trip times come from the kernel",
          "[remembered][SORT-2][ATTEMPT-4]") {
  with_functions use;
  if (this_network() == 0) return;  // the lab's cases have one
  const runtime_folder folder;
  const happy_netlink kernel = made_up_kernel();
  set_network_table(&kernel);
  keep_history(folder.path(), seconds(60));
  const history_note lost{.where = ip("192.0.2.10"), .name = hash_of("name.example"), .at = start};
  const history_note won{
      .where = ip("192.0.2.11"), .name = hash_of("name.example"), .connected = true, .at = start};
  const history_note notes[] = {lost, won};
  remember(notes, start);
  CHECK(success_is_news(ip("192.0.2.10"), 0));

  SECTION("learnt since the host has its address") {
    path_age_ms = 1000;
    address_age_ms = 1000;
    auto list = two_candidates();
    const recalled found = recall(list, "name.example", recall_from::all, start);
    CHECK(found.paths == 2);
    CHECK(found.demoted == 1);
    CHECK(found.used == 1);
    CHECK(list[0].demoted);
    CHECK(list[1].used);
    CHECK(list[1].rtt == milliseconds(80));
    CHECK(list[1].rtt_variance == milliseconds(10));
    CHECK(list[1].rtt_age == milliseconds(1000));
  }
  SECTION("learnt before: on another network") {
    path_age_ms = 1001;
    address_age_ms = 1000;
    auto list = two_candidates();
    CHECK(recall(list, "name.example", recall_from::all, start).paths == 0);
    CHECK(list[1].rtt == duration(0));
  }
  SECTION("nobody knows since when") {
    path_age_ms = 1;
    address_age_ms = -1;
    auto list = two_candidates();
    CHECK(recall(list, "name.example", recall_from::all, start).paths == 0);
  }
  SECTION("from memory alone: neither the file nor the kernel") {
    questions = 0;
    auto list = two_candidates();
    const recalled found = recall(list, "name.example", recall_from::memory, start);
    CHECK(found.demoted == 1);
    CHECK(questions == 0);
  }
  SECTION("after the process went elsewhere nothing holds until it is found out anew") {
    forget_network();
    auto list = two_candidates();
    CHECK(recall(list, "name.example", recall_from::memory, start).demoted == 0);
    CHECK(recall(list, "name.example", recall_from::all, start).demoted == 1);
  }
  set_network_table(nullptr);
}

}  // namespace happy
