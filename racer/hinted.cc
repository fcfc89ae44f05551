#include "racer/hinted.h"

#include <cstring>

#include "racer/connect_call.h"
#include "racer/lookup_call.h"
#include "resolver/clock.h"
#include "resolver/lookup_intent.h"
#include "resolver/source_address.h"
#include "resolver/trace.h"
#include "shim/base/handler_sign.h"
#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

int af_of(const intent& meant) {
  if (meant.ipv4 && meant.ipv6) return AF_UNSPEC;
  return meant.ipv4 ? AF_INET : AF_INET6;
}

bool is_stream(int fd) {
  int type = 0;
  return read_socket(fd, SOL_SOCKET, SO_TYPE, type) && type == SOCK_STREAM;
}

// Its table is large for the stack of a thread that connects to an address without a hint.
[[gnu::noinline]] bool is_known(core& c, const endpoint& named) {
  core_guard guard(c);
  known_destination known;
  return c.intents.find(named, raw_gettid(), clock_now(), known);
}

}  // namespace

void publish_hints(core& c, const intent& meant) {
  happy_hint hint{};
  const std::string& name = meant.full_name.empty() ? meant.name : meant.full_name;
  if (name.size() >= sizeof hint.name) return;
  std::memcpy(hint.name, name.c_str(), name.size() + 1);
  hint.af = af_of(meant);
  for (const candidate& known : meant.candidates) {
    hint.to = to_sockaddr({known.destination, 0}).storage;
    c.host.publish_hint(&hint);
  }
}

void follow_hint(core& c, const happy_connect& call, const endpoint& named) {
  happy_hint hint;
  if (c.host.find_hint(call.to, call.length, &hint) == 0 || !is_stream(call.fd)) return;
  if (is_known(c, named)) return;
  if (may_be_in_handler(call.signals)) return;  // a lookup allocates
  addrinfo hints{};
  hints.ai_family = hint.af;
  hints.ai_socktype = SOCK_STREAM;
  const happy_question question{hint.name, nullptr, &hints};
  begun_lookup begun = begin_lookup(c, question, false, named.port);
  auto* work = std::get_if<std::unique_ptr<name_resolution>>(&begun.outcome);
  if (work == nullptr) return;
  if (trace_on()) {
    json_line line = trace_line("hint", begun.id);
    line.text("name", hint.name).where("endpoint", named);
    emit(line);
  }
  const time_point now = clock_now();
  intent meant = intent_of(begun.id, question, nullptr, now);
  meant.unconfirmed = true;
  candidate first{.destination = named.address};
  source_probe().probe(first, 0);
  meant.candidates.push_back(first);
  (*work)->asked().turn(now);
  keep(c, std::move(meant), (*work)->release(), false);
}

}  // namespace happy
