#include "racer/race_trace.h"

#include <cstring>

namespace happy {
namespace {

json_line race_line(const char* event, const pending_race& r) {
  json_line line = trace_line(event, r.known.id);
  line.number("race", static_cast<std::int64_t>(r.id)).number("fd", r.fd);
  return line;
}

const char* error_name(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : "unknown error";
}

void trace_error(const char* event, const pending_race& r, const endpoint& where, int error) {
  if (!trace_on()) return;
  json_line line = race_line(event, r);
  line.where("endpoint", where).text("error", error_name(error));
  emit(line);
}

}  // namespace

void trace_race_endpoint(const char* event, const pending_race& r, const endpoint& where) {
  if (!trace_on()) return;
  json_line line = race_line(event, r);
  line.where("endpoint", where).number("hidden", where == r.named ? 0 : 1);
  emit(line);
}

void trace_attempt(const pending_race& r, const race_action& action) {
  if (!trace_on()) return;
  json_line line = race_line("attempt", r);
  line.where("endpoint", action.where).number("hidden", action.where == r.named ? 0 : 1);
  if (action.in_turn) line.number("group", action.group).text("because", to_text(action.why));
  emit(line);
}

void trace_failure(const pending_race& r, const endpoint& where, int error) {
  trace_error("failure", r, where, error);
}

void trace_trouble(const pending_race& r, const endpoint& where, int error) {
  trace_error("trouble", r, where, error);
}

void trace_lost(const pending_race& r) {
  if (!trace_on()) return;
  json_line line = race_line("lost", r);
  emit(line);
}

void trace_abandon(const pending_race& r, const char* why) {
  if (!trace_on()) return;
  json_line line = race_line("abandoned", r);
  line.text("reason", why);
  emit(line);
}

void trace_connect_pass(int fd, const endpoint& where, const char* reason) {
  if (!trace_on()) return;
  json_line line = trace_line("pass", 0);
  line.text("call", "connect").number("fd", fd).where("endpoint", where).text("reason", reason);
  emit(line);
}

}  // namespace happy
