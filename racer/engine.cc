// The engine's side of abi.h: a table of contents. Exceptions stop here and mean "decline".

#include <cstdlib>
#include <new>
#include <type_traits>

#include "racer/blocking_connect.h"
#include "racer/connect_call.h"
#include "racer/core.h"
#include "racer/history_notes.h"
#include "racer/lookup_call.h"
#include "racer/nonblocking_connect.h"
#include "racer/progress.h"
#include "racer/query_call.h"
#include "racer/socket_options.h"
#include "racer/synthesis.h"
#include "resolver/answer_cache.h"
#include "resolver/clock.h"
#include "resolver/gai_conf.h"
#include "resolver/network.h"
#include "resolver/remembered.h"
#include "resolver/thread_resolver.h"
#include "resolver/trace.h"
#include "shim/base/abi_version.h"
#include "shim/base/real_functions.h"

namespace happy {
namespace {

alignas(core) unsigned char core_storage[sizeof(core)];
constinit core* engine_core = nullptr;

// Whatever goes wrong inside is as if libhappy were absent.
template <typename Function, typename Outcome>
Outcome guarded(Outcome otherwise, Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    return otherwise;
  }
}

template <typename Function>
void guarded(Function&& function) noexcept {
  try {
    function();
  } catch (...) {
  }
}

happy_lookup_step lookup_begin_hook(happy_lookup* call) {
  return guarded(HAPPY_LOOKUP_DECLINED, [&] { return lookup_begin(the_core(), *call); });
}

happy_lookup_step lookup_continue_hook(happy_lookup* call) {
  return guarded(HAPPY_LOOKUP_DECLINED, [&] { return lookup_continue(the_core(), *call); });
}

void lookup_left_hook(happy_lookup* call) {
  guarded([&] { lookup_left(the_core(), *call); });
}

void remember_hook(const happy_question* question, const addrinfo* list) {
  guarded([&] { remember(the_core(), *question, list); });
}

void remember_host_hook(const char* name, const hostent* answer) {
  guarded([&] { remember_host(the_core(), name, *answer); });
}

happy_lookup_step query_begin_hook(happy_query* call) {
  return guarded(HAPPY_LOOKUP_DECLINED, [&] { return query_begin(the_core(), *call); });
}

happy_lookup_step query_continue_hook(happy_query* call) {
  return guarded(HAPPY_LOOKUP_DECLINED, [&] { return query_continue(*call); });
}

void query_left_hook(happy_query* call) {
  guarded([&] { query_left(*call); });
}

int first_nameserver_hook(const struct __res_state* state) {
  return first_answering(*state, clock_now());
}

void notice_srv_hook(const unsigned char* reply, std::size_t size) {
  guarded([&] { notice_srv(the_core(), {reply, size}); });
}

void connecting_anew_hook(int fd) {
  guarded([&] { connecting_anew(the_core(), fd); });
}

void disconnecting_hook(int fd) {
  guarded([&] { disconnecting(the_core(), fd); });
}

void fds_closing_hook(unsigned first, unsigned last) {
  guarded([&] { fds_closing(the_core(), first, last); });
}

void fds_leaving_hook(const int* fds, unsigned count) {
  guarded([&] { fds_leaving(the_core(), fds, count); });
}

std::int64_t wait_limit_hook(const int* fds, unsigned count, std::uint64_t signals) {
  const std::int64_t limit =
      guarded(std::int64_t{-1}, [&] { return wait_limit(the_core(), fds, count, signals); });
  guarded([] { save_history(the_core()); });
  return limit;
}

int change_epoll_hook(int set, int operation, int fd, epoll_event* event) {
  return change_epoll(the_core(), set, operation, fd, event);
}

void quiesce_hook(int network_changes) {
  guarded([&] { quiesce(the_core(), network_changes != 0); });
}

// The step, and behind it, without the lock, what it has noted is written.
template <typename Function>
happy_step stepped(happy_step otherwise, Function&& function) noexcept {
  const happy_step next = guarded(otherwise, function);
  guarded([] { save_history(the_core()); });
  return next;
}

happy_step begin_hook(happy_connect* call) {
  return guarded(HAPPY_STEP_PASS, [&] { return connect_begin(the_core(), *call); });
}

happy_step returned_hook(happy_connect* call, int result, int error) {
  call->result = result;
  call->error = error;
  return stepped(HAPPY_STEP_RESULT,
                 [&] { return connect_returned(the_core(), *call, result, error); });
}

happy_step woken_hook(happy_connect* call, int error) {
  return stepped(HAPPY_STEP_RESULT, [&] { return connect_woken(the_core(), *call, error); });
}

happy_step polled_hook(happy_connect* call, int error) {
  return stepped(HAPPY_STEP_RESULT, [&] { return connect_polled(the_core(), *call, error); });
}

happy_lookup_step synthesise_hook(happy_synthesis* call) {
  return guarded(HAPPY_LOOKUP_DECLINED, [&] { return synthesise(the_core(), *call); });
}

int ipv4_behind_hook(const in6_addr* a, std::uint32_t* ipv4) {
  return guarded(0, [&] { return ipv4_behind(the_core(), from_in6_addr(*a), *ipv4) ? 1 : 0; });
}

void left_hook(happy_connect* call) {
  guarded([&] { connect_left(the_core(), *call); });
}

void at_exit() { the_core().host.switch_off(); }

}  // namespace

core& the_core() { return *engine_core; }

}  // namespace happy

extern "C" __attribute__((visibility("default"))) int happy_engine_start(const happy_host* host,
                                                                         happy_engine* engine) {
  using namespace happy;
  if (host->abi_version != abi_version) return EINVAL;
  real = host->real;
  set_trace_host(host);
  set_network_host(host);
  watch_datagram_options(&host->pending->datagram_options);
  if (host->settings->history != 0) {
    keep_history(std::getenv("XDG_RUNTIME_DIR"),
                 std::chrono::seconds(host->settings->history_retry_s));
  }
  prefer_known_local_ula(host->settings->known_local_ula != 0);
  engine_core =
      guarded<>(static_cast<core*>(nullptr), [&] { return new (core_storage) core(*host); });
  if (engine_core == nullptr) return ENOMEM;
  know_proc(*engine_core);
  // The engine is never unloaded and nothing of it is destroyed: hooks simply stop using it.
  if (std::atexit(at_exit) != 0) return ENOMEM;
  std::at_quick_exit(at_exit);
  *engine = {.abi_version = abi_version,
             .lookup_begin = lookup_begin_hook,
             .lookup_continue = lookup_continue_hook,
             .lookup_left = lookup_left_hook,
             .remember = remember_hook,
             .remember_host = remember_host_hook,
             .query_begin = query_begin_hook,
             .query_continue = query_continue_hook,
             .query_left = query_left_hook,
             .first_nameserver = first_nameserver_hook,
             .notice_srv = notice_srv_hook,
             .connect_begin = begin_hook,
             .connect_returned = returned_hook,
             .connect_woken = woken_hook,
             .connect_polled = polled_hook,
             .connect_left = left_hook,
             .synthesise = synthesise_hook,
             .ipv4_behind = ipv4_behind_hook,
             .fds_closing = fds_closing_hook,
             .connecting_anew = connecting_anew_hook,
             .disconnecting = disconnecting_hook,
             .fds_leaving = fds_leaving_hook,
             .wait_limit = wait_limit_hook,
             .change_epoll = change_epoll_hook,
             .quiesce = quiesce_hook,
             .forget_answers = forget_known_answers,
             .fork_prepare = [] { return fork_prepare() ? 1 : 0; },
             .fork_parent = fork_parent,
             .fork_child = fork_child};
  return 0;
}
