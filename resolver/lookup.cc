#include "resolver/lookup.h"

#include <algorithm>
#include <iterator>

#include "resolver/answer_cache.h"
#include "resolver/connectivity.h"
#include "resolver/trace.h"
#include "shim/base/real_functions.h"

namespace happy {
namespace {

const char* to_text(record_type type) { return type == record_type::a ? "A" : "AAAA"; }

const char* to_text(answer_kind kind) {
  switch (kind) {
    case answer_kind::positive: return "positive";
    case answer_kind::no_data: return "no data";
    case answer_kind::name_error: return "no such name";
    case answer_kind::hollow: return "records without an address";
    case answer_kind::server_failure: return "server failure";
    case answer_kind::odd: return "odd reply";
    case answer_kind::not_sent: return "not sent";
    case answer_kind::timed_out: return "timed out";
  }
  return "?";
}

void trace_answer(std::uint64_t id, const answer& a) {
  if (!trace_on()) return;
  json_line line = trace_line("answer", id);
  line.text("type", to_text(a.type)).text("kind", to_text(a.kind));
  line.list("addresses", a.addresses.size(), [&](std::size_t i) { return a.addresses[i]; });
  emit(line);
}

void trace_query(std::uint64_t id, const std::string& name, record_type type) {
  if (!trace_on()) return;
  json_line line = trace_line("query", id);
  line.text("name", name.c_str()).text("type", to_text(type));
  emit(line);
}

}  // namespace

lookup::lookup(std::uint64_t id, const name_plan& plan, const resolution::settings& s)
    : id_(id),
      plan_(plan),
      generation_(plan.config->generation ^ network_fingerprint()),
      resolution_(s) {}

std::optional<move_on> lookup::turn(time_point now) {
  take_in(now);
  for (;;) {
    const resolution::action next = resolution_.poll(now);
    switch (next.what) {
      case resolution::action::kind::finished: return next.reason;
      case resolution::action::kind::query: send(next.type, now); break;
      case resolution::action::kind::wait:
        if (absorb(now)) break;  // a query that could not be sent is answered already
        return std::nullopt;
    }
  }
}

time_point lookup::wait_until(time_point now) {
  return std::min(resolution_.poll(now).until, deadline(now));
}

bool lookup::service(time_point now) {
  if (!hidden_) hide();
  return take_in(now);
}

// Nobody waits for the queries any more, and the program is to have the low numbers.
void lookup::hide() {
  hidden_ = true;
  for (asked& a : asked_) std::erase_if(a.queries, [](dns_query& query) { return !query.hide(); });
}

bool lookup::take_in(time_point now) {
  auto fds = poll_set();
  if (!fds.empty() && real->poll(fds.begin(), fds.size(), 0) <= 0) fds.clear();
  for (asked& a : asked_) {
    for (dns_query& query : a.queries) {
      for (const pollfd& fd : fds) {
        if (fd.revents != 0) query.process(fd.fd, fd.revents);
      }
      query.process_timeouts();
    }
  }
  const bool any = absorb(now);
  resend_if_due(now);
  return any;
}

// Hands finished queries to the state machine.
bool lookup::absorb(time_point now) {
  const bool aaaa = absorb(record_type::aaaa, now);
  return absorb(record_type::a, now) || aaaa;
}

bool lookup::absorb(record_type type, time_point now) {
  std::vector<dns_query>& queries = of(type).queries;
  for (auto query = queries.begin(); query != queries.end(); ++query) {
    std::optional<answer> a = query->take_answer();
    if (!a) continue;
    const bool failed = a->kind == answer_kind::server_failure || a->kind == answer_kind::timed_out;
    if (failed && queries.size() > 1) {  // a repetition may still succeed
      queries.erase(query);
      return absorb(type, now);
    }
    trace_answer(id_, *a);
    keep_known_answer(plan_.name, *a, generation_, now);
    resolution_.handle(*a, now);
    queries.clear();
    return true;
  }
  return false;
}

// never: this type has its answer, the other has none either, or it was repeated often enough.
time_point lookup::next_resend(record_type type) const {
  const asked& a = of(type);
  const record_type other_type = type == record_type::a ? record_type::aaaa : record_type::a;
  const bool lives = resolution_.answered(other_type) != nullptr;
  if (a.queries.empty() || !lives || a.queries.size() > std::size(resend_after)) return never;
  return a.sent + resend_after[a.queries.size() - 1];
}

void lookup::resend_if_due(time_point now) {
  for (const record_type type : {record_type::aaaa, record_type::a}) {
    if (now < next_resend(type)) continue;
    trace_query(id_, plan_.name, type);
    result<dns_query> query = dns_query::start(plan_.name, type, *plan_.config);
    if (query.ok() && (!hidden_ || query.value().hide()))
      of(type).queries.push_back(std::move(query.value()));
    else
      of(type).sent = never - std::chrono::hours(1);  // no socket: leave it at what was sent
  }
}

bounded_vector<pollfd, max_lookup_fds> lookup::poll_set() const {
  bounded_vector<pollfd, max_lookup_fds> all;
  for (const asked& a : asked_) {
    for (const dns_query& query : a.queries) {
      for (const pollfd& fd : query.poll_set()) all.push_back(fd);
    }
  }
  return all;
}

void lookup::drop() {
  dropped_ = true;
  for (asked& a : asked_) {
    for (dns_query& query : a.queries) query.close_sockets();
  }
}

time_point lookup::deadline(time_point now) const {
  time_point earliest = std::min(next_resend(record_type::aaaa), next_resend(record_type::a));
  for (const asked& a : asked_) {
    for (const dns_query& query : a.queries) {
      if (const auto left = query.until_timeout()) earliest = std::min(earliest, now + *left);
    }
  }
  return earliest;
}

void lookup::send(record_type type, time_point now) {
  if (const auto known = find_known_answer(plan_.name, type, generation_, now)) {
    trace_answer(id_, *known);
    resolution_.handle(*known, now);
    return;
  }
  trace_query(id_, plan_.name, type);
  result<dns_query> query = dns_query::start(plan_.name, type, *plan_.config);
  if (query.ok()) {
    of(type).queries.push_back(std::move(query.value()));
    of(type).sent = now;
    return;
  }
  answer failed;
  failed.type = type;
  failed.kind = answer_kind::not_sent;
  resolution_.handle(failed, now);
}

duration glibc_patience(const resolver_config& config) {
  return glibc_round(config) * config.attempts;
}

}  // namespace happy
