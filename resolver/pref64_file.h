// The file in which happy-pref64 keeps what routers have advertised: the kernel forgets it, and a program
// that begins later would not hear of it until the routers speak again.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "resolver/file_version.h"
#include "resolver/prefix_table.h"

namespace happy {

inline constexpr char pref64_folder[] = "/run/happy-pref64";

struct stored_prefix {
  advertiser who;
  nat64_prefix prefix;
  std::int64_t expires_s = 0;  // CLOCK_BOOTTIME: lifetimes pass while the machine sleeps

  friend bool operator==(const stored_prefix&, const stored_prefix&) = default;
};

using stored_list = bounded_vector<stored_prefix, max_advertised>;

// A line has less than 150 characters, and the table so many.
inline constexpr std::size_t max_pref64_file = max_advertised * 150 + 100;

// Text, a line for each: "prefix 2001:db8:64::/96 interface 2 router fe80::1 expires 86400". `network` is
// the inode of the network namespace, whose decimal form is also the file's name.
std::string format_prefixes(std::span<const stored_prefix> list, std::uint64_t network);

// nullopt: not the whole of such a text, or about another network. Does not allocate.
std::optional<stored_list> parse_prefixes(std::string_view text, std::uint64_t network);

// The inode of this process's network namespace; 0 if /proc does not say.
std::uint64_t current_network();

// Whether what stands in `folder` can only come from root or from the service that root gave it to.
bool may_be_believed(const struct stat& parent, const struct stat& folder, const struct stat& file);

// Keeps a table as the file has it. Anything odd about the file means that there is none.
class pref64_file {
 public:
  explicit pref64_file(const char* folder = pref64_folder) : folder_(folder) {}

  // Context:  two stat() calls where nothing has changed; does not wait, does not allocate.
  void refresh(prefix_table& table, time_point now);

  // The next refresh() reads it again.
  void forget();

 private:
  bool has_changed(const char* path);
  std::string_view read(const char* path);

  const char* folder_;
  char text_[max_pref64_file + 1];  // stacks are small where signal handlers run
  std::uint64_t network_ = 0;
  file_version known_;
};

}  // namespace happy
