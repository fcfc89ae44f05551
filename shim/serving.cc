#include "shim/serving.h"

#include <atomic>
#include <cstddef>
#include <cstring>

#include "shim/process.h"

namespace happy {
namespace {

// Programs that print or compare the addresses of a name. Daemons are here for the processes that they
// start anew for each connection (sshd), which never listen themselves.
constexpr char comparing_programs[][16] = {
    "getent", "nft",          "iptables",  "ip6tables", "ufw",      "firewalld",
    "sshd",   "sshd-session", "sshd-auth", "tcpd",      "postgres", "exportfs",
    "mountd", "rpc.mountd",   "in.tftpd",  "xinetd",    "host",
};

// Programs that say of each address whether it answers: another's answer would make that untrue.
constexpr char probing_programs[][16] = {"nmap", "nping"};

constinit std::atomic<bool> serving{false};

template <std::size_t Count>
bool is_one_of(const char (&programs)[Count][16], const char* path) {
  if (path == nullptr) return false;
  const char* slash = std::strrchr(path, '/');
  const char* name = slash != nullptr ? slash + 1 : path;
  for (const auto& known : programs) {
    if (std::strcmp(name, known) == 0) return true;
  }
  return false;
}

}  // namespace

void note_serving() { serving.store(true, std::memory_order_relaxed); }

bool is_serving() { return serving.load(std::memory_order_relaxed); }

void note_program(const char* path) {
  if (is_one_of(comparing_programs, path)) note_serving();
}

bool is_prober(const char* path) { return is_one_of(probing_programs, path); }

bool wants_complete_results() {
  return is_serving() || process_environment().settings.partial == 0;
}

}  // namespace happy
