#include "resolver/lookup.h"

#include <algorithm>
#include <iterator>

#include "resolver/answer_cache.h"
#include "resolver/connectivity.h"
#include "resolver/trace.h"
#include "shim/base/real_functions.h"

namespace happy {
namespace {

const char* to_text(record_type type) {
  switch (type) {
    case record_type::a: return "A";
    case record_type::aaaa: return "AAAA";
    case record_type::srv: return "SRV";
    case record_type::svcb: return "SVCB";
    case record_type::https: return "HTTPS";
  }
  return "?";
}

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

void trace_service(std::uint64_t id, const service_record& r) {
  json_line line = trace_line("service", id);
  line.number("priority", r.priority).text("target", r.target.empty() ? "." : r.target.c_str());
  line.number("weight", r.weight).number("port", r.port).number("usable", r.usable ? 1 : 0);
  line.list("hints", r.hints.size(), [&](std::size_t i) { return r.hints[i]; });
  emit(line);
}

void trace_answer(std::uint64_t id, const std::string& name, const answer& a) {
  if (!trace_on()) return;
  json_line line = trace_line("answer", id);
  line.text("name", name.c_str()).text("type", to_text(a.type)).text("kind", to_text(a.kind));
  line.list("addresses", a.addresses.size(), [&](std::size_t i) { return a.addresses[i]; });
  emit(line);
  trace_services(id, a.services);
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
      case resolution::action::kind::query: send(next.query, now); break;
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
  bool any = take_in(now);
  for (resolution::action next = resolution_.poll(now);
       next.what == resolution::action::kind::query; next = resolution_.poll(now)) {
    any = send(next.query, now) || any;
  }
  return any;
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
  bool any = false;
  for (std::size_t i = 0; i < asked_.size(); ++i) any = absorb(i, now) || any;
  return any;
}

bool lookup::absorb(std::size_t number, time_point now) {
  std::vector<dns_query>& queries = asked_[number].queries;
  for (auto query = queries.begin(); query != queries.end(); ++query) {
    std::optional<answer> a = query->take_answer();
    if (!a) continue;
    const bool failed = a->kind == answer_kind::server_failure || a->kind == answer_kind::timed_out;
    if (failed && queries.size() > 1) {  // a repetition may still succeed
      queries.erase(query);
      return absorb(number, now);
    }
    trace_answer(id_, resolution_.name_of(number), *a);
    keep_known_answer(resolution_.name_of(number), *a, generation_, now);
    resolution_.handle(number, *a, now);
    queries.clear();
    lives_since_ = std::min(lives_since_, now);
    return true;
  }
  return false;
}

// never: it has its answer, none has one, or it was repeated often enough.
time_point lookup::next_resend(const asked& a) const {
  if (a.queries.empty() || lives_since_ == never || a.queries.size() > std::size(resend_after))
    return never;
  return std::max(a.sent, lives_since_) + resend_after[a.queries.size() - 1];
}

void lookup::resend_if_due(time_point now) {
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    asked& a = asked_[i];
    if (now < next_resend(a)) continue;
    const std::string& name = resolution_.name_of(i);
    const record_type type = resolution_.type_of(i);
    trace_query(id_, name, type);
    result<dns_query> query = dns_query::start(name, type, *plan_.config);
    if (query.ok() && (!hidden_ || query.value().hide()))
      a.queries.push_back(std::move(query.value()));
    else
      a.sent = never - std::chrono::hours(1);  // no socket: leave it at what was sent
  }
}

bounded_vector<pollfd, max_lookup_fds> lookup::poll_set() const {
  bounded_vector<pollfd, max_lookup_fds> all;
  // From the latest: silent ones before them must not take all the room.
  for (auto a = asked_.rbegin(); a != asked_.rend(); ++a) {
    for (const dns_query& query : a->queries) {
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
  time_point earliest = std::min(closes_, resolution_.asks_more_at());
  for (const asked& a : asked_) {
    earliest = std::min(earliest, next_resend(a));
    for (const dns_query& query : a.queries) {
      if (const auto left = query.until_timeout()) earliest = std::min(earliest, now + *left);
    }
  }
  return earliest;
}

bool lookup::send(std::size_t number, time_point now) {
  const std::string& name = resolution_.name_of(number);
  const record_type type = resolution_.type_of(number);
  if (asked_.size() <= number) asked_.resize(number + 1);
  if (const auto known = find_known_answer(name, type, generation_, now)) {
    trace_answer(id_, name, *known);
    resolution_.handle(number, *known, now);
    return true;
  }
  trace_query(id_, name, type);
  result<dns_query> query = dns_query::start(name, type, *plan_.config);
  if (query.ok() && (!hidden_ || query.value().hide())) {
    asked_[number].queries.push_back(std::move(query.value()));
    asked_[number].sent = now;
    return false;
  }
  answer failed;
  failed.type = type;
  failed.kind = answer_kind::not_sent;
  resolution_.handle(number, failed, now);
  return true;
}

void trace_services(std::uint64_t id, const std::vector<service_record>& records) {
  if (!trace_on()) return;
  for (const service_record& r : records) trace_service(id, r);
}

duration glibc_patience(const resolver_config& config) {
  return glibc_round(config) * config.attempts;
}

}  // namespace happy
