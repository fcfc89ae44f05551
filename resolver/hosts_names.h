// Which names /etc/hosts mentions: a list of a hundred thousand blocked ones costs a lookup no more than ten lines do.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace happy {

// By their hashes; the text is not needed any more.
class hosts_names {
 public:
  hosts_names() = default;
  explicit hosts_names(std::string_view text);

  // Whether a line names `name`, with or without trailing dots, in any case. Lines that glibc would pass over (a broken
  // address) count too, and one name in thousands of millions that is not there: the real function judges then.
  bool mention(std::string_view name) const;

  bool empty() const { return table_.empty(); }

 private:
  std::vector<std::uint32_t> table_;  // a power of two of places, half of them free (0)
};

}  // namespace happy
