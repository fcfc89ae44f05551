// Reads /etc/resolv.conf, nsswitch.conf, hosts and gai.conf, and again when they have changed.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "resolver/name_plan.h"
#include "resolver/text_file.h"

namespace happy {

// Not for two threads at once; what current() returned is.
class system_files {
 public:
  // `root` is put before each path: for tests.
  explicit system_files(const std::string& root = {});

  // Changed files, another host name and HOSTALIASES give a new snapshot. What else the environment says counts as it
  // was when the file that it belongs to was read last, as in glibc. A file that cannot be used is part of the
  // snapshot, as the reason to decline.
  //
  // Context:  a stat() of four files; opens and reads those that changed.
  std::shared_ptr<const system_snapshot> current();

 private:
  struct surroundings {
    std::string host_name;
    bool host_aliases = false;

    friend bool operator==(const surroundings&, const surroundings&) = default;
  };

  static surroundings look_around();
  std::shared_ptr<const system_snapshot> make_snapshot() const;

  text_file resolv_conf_;
  text_file nsswitch_conf_;
  text_file hosts_;
  text_file gai_conf_;
  text_file host_conf_;  // read once, as by glibc
  std::shared_ptr<const hosts_names> hosts_names_;
  bool reorders_hosts_ = false;
  resolver_environment resolver_;  // as it was when resolv.conf was read
  surroundings surroundings_;
  std::shared_ptr<const system_snapshot> snapshot_;
  std::uint64_t generation_ = 0;
};

}  // namespace happy
