// What the two ways of racing a connect() share: the program's call, step by step (see abi.h).
#pragma once

#include "racer/core.h"
#include "racer/nonblocking_connect.h"
#include "racer/race_trace.h"

namespace happy {

// happy_connect::stage
enum stage : int {
  stage_quiet,    // the fd's SO_SNDTIMEO is one clock tick: a near host answers within it
  stage_timed,    // the fd's SO_SNDTIMEO carries the delay
  stage_untimed,  // the kernel alone ends the call (or the program's own SO_SNDTIMEO)
  stage_pending,  // the socket does not block: the call begins an attempt and returns
  stage_joined,   // the same, of a program that races by itself: its second socket and later ones
  stage_beside,   // there is no worker: the caller polls for its own attempt and the hidden ones
  stage_instead,  // the same, its own attempt has failed
  stage_alone,  // the race has ended under such a caller, whose own attempt goes on: connect() is entered again
};

inline happy_step give(happy_connect& call, int result, int error) {
  call.result = result;
  call.error = error;
  return HAPPY_STEP_RESULT;
}

inline happy_step pass(const happy_connect& call, const endpoint& named, const char* reason) {
  trace_connect_pass(call.fd, named, reason);
  return HAPPY_STEP_PASS;
}

template <typename Value>
bool read_socket(int fd, int level, int name, Value& value) {
  socklen_t length = sizeof value;
  return real->getsockopt(fd, level, name, &value, &length) == 0;
}

// The local address and port; false if the kernel does not say.
inline bool read_local(int fd, endpoint& local) {
  socket_address name;
  name.length = sizeof name.storage;
  return real->getsockname(fd, name.get(), &name.length) == 0 &&
         from_sockaddr(name.get(), name.length, local);
}

// 0: none yet.
inline std::uint16_t local_port(int fd) {
  endpoint local;
  return read_local(fd, local) ? local.port : std::uint16_t{0};
}

enum class handed : std::uint8_t {
  to_worker,
  to_nobody,  // there is none
  ended,      // the race is over, and the record may be another's by now
};

// The worker takes over: at once (`from` = now) or when the time has come.
inline handed hand_to_worker(core& c, pending_race& r, const happy_connect& call, time_point from) {
  const std::uint32_t generation = r.generation;
  r.armed = true;
  r.active_from = from;
  count_pending(c);
  const employer by{call.single_threaded != 0, call.signals, &r, from};
  const bool engaged = c.hidden_worker.engage(c, by);
  if (r.generation != generation) return handed::ended;
  if (engaged) return handed::to_worker;
  // Who drives it now, or ends it, counts again: for other threads' hooks it is pending all the time.
  r.armed = false;
  return handed::to_nobody;
}

// Judges the call and takes the first step. The only one that may say STEP_PASS.
happy_step connect_begin(core& c, happy_connect& call);

// The real connect() has returned.
happy_step connect_returned(core& c, happy_connect& call, int result, int error);

// The caller will not come back.
void connect_left(core& c, happy_connect& call);

}  // namespace happy
