// libc's lookups without its dns module.
#pragma once

#include <optional>

#include "shim/departure.h"

namespace happy {

// While it lives, the calling thread's resolver state (_res) has no nameservers, if they have been found silent: dns
// then fails in libc as it did here, at once, and the modules behind it in nsswitch.conf are asked.
class silent_nameservers {
 public:
  explicit silent_nameservers(bool silent);
  ~silent_nameservers() { give_back(); }
  silent_nameservers(const silent_nameservers&) = delete;
  silent_nameservers& operator=(const silent_nameservers&) = delete;

  // For who asks libc's resolver meanwhile: a module behind dns.
  static void give_back();

 private:
  std::optional<departure_watch> watch_;  // the thread may leave libc's lookup by siglongjmp()
};

}  // namespace happy
