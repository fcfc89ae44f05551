#include "resolver/trace.h"

#include "resolver/clock.h"
#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

constinit const happy_host* host = nullptr;

}  // namespace

void set_trace_host(const happy_host* new_host) { host = new_host; }

bool trace_on() { return host != nullptr && host->settings->trace != 0; }

json_line trace_line(const char* event, std::uint64_t lookup) {
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(clock_now().time_since_epoch());
  json_line line(event, us.count(), raw_getpid(), raw_gettid());
  if (lookup != 0) line.number("lookup", static_cast<std::int64_t>(lookup));
  return line;
}

void emit(json_line& line) {
  line.finish();
  host->trace(line.data(), line.size());
}

}  // namespace happy
