#include "racer/query_call.h"

#include <netdb.h>

#include <algorithm>
#include <memory>

#include "resolver/clock.h"
#include "resolver/dns_client.h"
#include "resolver/thread_resolver.h"
#include "resolver/trace.h"

namespace happy {
namespace {

static_assert(max_query_fds <= HAPPY_MAX_LOOKUP_FDS);

// Null: resolv.conf is one that only libc understands.
std::shared_ptr<const resolver_config> config_of(core& c) {
  core_guard guard(c);
  const auto files = c.files.current();
  const auto* config = std::get_if<std::shared_ptr<const resolver_config>>(&files->resolver);
  return config == nullptr ? nullptr : *config;
}

void trace_query(const happy_query& call, const char* outcome) {
  if (!trace_on()) return;
  json_line line = trace_line("res_query", 0);
  line.text("name", call.name).number("type", call.type).text("outcome", outcome);
  emit(line);
}

happy_lookup_step wait(happy_query& call, const dns_query& query) {
  const auto fds = query.poll_set();
  std::copy(fds.begin(), fds.end(), call.fds);
  call.fd_count = fds.size();
  const time_point now = clock_now();
  call.timeout_ms = wait_ms(now + query.until_timeout().value_or(duration::zero()), now);
  return HAPPY_LOOKUP_POLL;
}

// As libc's res_nquery() reads the header.
int resolver_error_of(answer_kind kind) {
  switch (kind) {
    case answer_kind::positive: return NETDB_SUCCESS;
    case answer_kind::no_data: return NO_DATA;
    case answer_kind::name_error: return HOST_NOT_FOUND;
    case answer_kind::server_failure:
    case answer_kind::timed_out: return TRY_AGAIN;
    default: return NO_RECOVERY;
  }
}

happy_lookup_step give(happy_query& call, const answer& said) {
  call.resolver_error = resolver_error_of(said.kind);
  if (said.kind == answer_kind::timed_out || said.kind == answer_kind::server_failure) {
    // What was said at once is said to libc at once, too, which knows what a search makes of it.
    if (said.kind == answer_kind::server_failure && said.refused != refusal::unreachable)
      return HAPPY_LOOKUP_DECLINED;
    call.error = said.kind == answer_kind::timed_out ? ETIMEDOUT : ECONNREFUSED;
    call.size = -1;
    return HAPPY_LOOKUP_DONE;
  }
  // What does not fit is cut by libc in ways of its own.
  if (said.packet.empty() || said.packet.size() > call.room) return HAPPY_LOOKUP_DECLINED;
  std::copy(said.packet.begin(), said.packet.end(), call.answer);
  call.error = 0;
  call.size = static_cast<int>(said.packet.size());
  return HAPPY_LOOKUP_DONE;
}

happy_lookup_step turn(happy_query& call) {
  auto& query = *static_cast<dns_query*>(call.work);
  const std::optional<answer> said = query.take_answer();
  if (!said) return wait(call, query);
  const happy_lookup_step step = give(call, *said);
  query_left(call);
  trace_query(call, step == HAPPY_LOOKUP_DONE ? "answered" : "declined");
  return step;
}

}  // namespace

happy_lookup_step query_begin(core& c, happy_query& call) {
  const std::shared_ptr<const resolver_config> config = config_of(c);
  if (config == nullptr || config->nameservers.size() < 2) return HAPPY_LOOKUP_DECLINED;
  if (!resolver_agrees(*call.state, *config)) return HAPPY_LOOKUP_DECLINED;
  auto query = dns_query::start(call.name, static_cast<record_type>(call.type), *config, dns_port,
                                query_reading::packet);
  if (!query.ok()) return HAPPY_LOOKUP_DECLINED;
  call.work = new dns_query(std::move(query.value()));
  return turn(call);
}

happy_lookup_step query_continue(happy_query& call) {
  auto& query = *static_cast<dns_query*>(call.work);
  for (nfds_t i = 0; i < call.fd_count; ++i) {
    if (call.fds[i].revents != 0) query.process(call.fds[i].fd, call.fds[i].revents);
  }
  query.process_timeouts();
  return turn(call);
}

void query_left(happy_query& call) {
  delete static_cast<dns_query*>(call.work);
  call.work = nullptr;
}

}  // namespace happy
