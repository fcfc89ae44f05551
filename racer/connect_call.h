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

// The worker takes over: at once (`from` = now) or when the time has come. False: there is none.
inline bool hand_to_worker(core& c, pending_race& r, const happy_connect& call, time_point from) {
  r.armed = true;
  r.active_from = from;
  count_pending(c);
  return c.hidden_worker.engage(c, call.single_threaded != 0);
}

// Judges the call and takes the first step. The only one that may say STEP_PASS.
happy_step connect_begin(core& c, happy_connect& call);

// The real connect() has returned.
happy_step connect_returned(core& c, happy_connect& call, int result, int error);

// The caller will not come back.
void connect_left(core& c, happy_connect& call);

}  // namespace happy
