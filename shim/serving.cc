#include "shim/serving.h"

#include <atomic>
#include <cstring>

#include "shim/process.h"

namespace happy {
namespace {

enum class program_kind : unsigned char {
  // They print or compare the addresses of a name. Daemons are here for the processes that they start anew for each
  // connection (sshd), which never listen themselves.
  comparing,
  // They say of each address whether it answers: another's answer would make that untrue.
  probing,
};

struct known_program {
  char name[15];
  program_kind kind;
};

using enum program_kind;

constexpr known_program known_programs[] = {
    {"exportfs", comparing},     {"firewalld", comparing}, {"getent", comparing},
    {"host", comparing},         {"in.tftpd", comparing},  {"ip6tables", comparing},
    {"iptables", comparing},     {"mountd", comparing},    {"nft", comparing},
    {"nmap", probing},           {"nping", probing},       {"postgres", comparing},
    {"rpc.mountd", comparing},   {"sshd", comparing},      {"sshd-auth", comparing},
    {"sshd-session", comparing}, {"tcpd", comparing},      {"ufw", comparing},
    {"xinetd", comparing},
};

constinit std::atomic<bool> serving{false};

const known_program* find_known(const char* path) {
  if (path == nullptr) return nullptr;
  const char* slash = std::strrchr(path, '/');
  const char* name = slash != nullptr ? slash + 1 : path;
  for (const known_program& known : known_programs) {
    if (std::strcmp(name, known.name) == 0) return &known;
  }
  return nullptr;
}

}  // namespace

void note_serving() { serving.store(true, std::memory_order_relaxed); }

bool is_serving() { return serving.load(std::memory_order_relaxed); }

bool note_program(const char* path) {
  const known_program* known = find_known(path);
  if (known != nullptr && known->kind == comparing) note_serving();
  return known == nullptr || known->kind != probing;
}

bool wants_complete_results() {
  return is_serving() || process_environment().settings.partial == 0;
}

}  // namespace happy
