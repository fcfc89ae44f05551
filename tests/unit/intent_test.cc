// What connect() can know of an address: the latest lookup that gave it, for a minute.
#include "resolver/intent.h"

#include "tests/support/catch.h"

using namespace happy;

namespace {

constexpr time_point start = time_point(std::chrono::hours(1));
constexpr pid_t this_thread = 100;
constexpr pid_t other_thread = 200;
constexpr pid_t third_thread = 300;

const address shared = make_ipv4(198, 51, 100, 10);
const address second = make_ipv4(198, 51, 100, 12);
const address third = make_ipv4(198, 51, 100, 13);

intent lookup_of(std::uint64_t id, pid_t thread, std::initializer_list<address> list,
                 time_point made = start) {
  intent result;
  result.id = id;
  result.thread = thread;
  result.made = made;
  for (const address& a : list) result.candidates.push_back({.destination = a});
  result.reserve_failures();
  return result;
}

std::vector<address> known(const intent_table& table, const address& a, time_point now = start) {
  known_destination found;
  std::vector<address> result;
  if (!table.find({a, 0}, this_thread, now, found)) return result;
  for (const candidate& c : found.candidates) result.push_back(c.destination);
  return result;
}

}  // namespace

TEST_CASE("intent: of two names with one address, the thread's latest lookup is meant",
          "[intent]") {
  intent_table table;
  table.add(lookup_of(1, this_thread, {shared, second}));
  table.add(lookup_of(2, this_thread, {shared, third}));
  CHECK(known(table, shared) == std::vector{shared, third});
  CHECK(known(table, second) == std::vector{shared, second});
}

TEST_CASE("intent: the thread's own lookup counts more than a later one of another", "[intent]") {
  intent_table table;
  table.add(lookup_of(1, this_thread, {shared, second}));
  table.add(lookup_of(2, other_thread, {shared, third}));
  CHECK(known(table, shared) == std::vector{shared, second});
}

TEST_CASE("intent: where other threads disagree, only their common ground is raced", "[intent]") {
  intent_table table;
  table.add(lookup_of(1, other_thread, {shared, second}));
  table.add(lookup_of(2, third_thread, {shared, third}));
  CHECK(known(table, shared) == std::vector{shared});
}

TEST_CASE("intent: an address is forgotten a minute after its lookup", "[intent]") {
  intent_table table;
  table.add(lookup_of(1, this_thread, {shared, second}));
  CHECK(known(table, shared, start + intent_lifetime).size() == 2);
  CHECK(known(table, shared, start + intent_lifetime + milliseconds(1)).empty());
}

TEST_CASE("intent: ten thousand names leave no more behind than the last ones", "[intent]") {
  intent_table table;
  for (std::uint64_t id = 1; id <= 10'000; ++id) table.add(lookup_of(id, this_thread, {shared}));
  CHECK(table.by_id(10'000 - max_intents) == nullptr);
  CHECK(table.by_id(10'000 - max_intents + 1) != nullptr);
  CHECK(table.by_id(10'000) != nullptr);
}

TEST_CASE("intent: the error of a failed race is served once, to its thread, for a second",
          "[intent]") {
  intent_table table;
  const endpoint where{shared, 80};
  const endpoint told{third, 80};
  const auto fail = [&] {
    const failure all[] = {{told, EHOSTUNREACH}, {where, ECONNREFUSED}};
    table.record_failures(*table.by_id(1), all, told, this_thread, start);
  };
  table.add(lookup_of(1, this_thread, {shared, second}));
  fail();
  CHECK(table.take_failure(where, other_thread, start) == 0);
  CHECK(table.take_failure({second, 80}, this_thread, start) == 0);
  CHECK(table.take_failure(told, this_thread, start) == 0);
  CHECK(table.take_failure(where, this_thread, start) == ECONNREFUSED);
  CHECK(table.take_failure(where, this_thread, start) == 0);
  fail();
  CHECK(table.take_failure(where, this_thread, start + failure_lifetime) == 0);
  fail();
  table.forget_failures(this_thread);
  CHECK(table.take_failure(where, this_thread, start) == 0);
}

TEST_CASE("intent: an endpoint of SRV is meant at its own port and at the service's",
          "[intent][XMPP-1]") {
  intent by_srv = lookup_of(1, this_thread, {shared, second});
  by_srv.by_srv = true;
  by_srv.service_port = 5222;
  by_srv.candidates[0].port = 5223;
  intent_table table;
  table.add(by_srv);
  const auto raced_at = [&](const address& a, std::uint16_t port) {
    known_destination found;
    REQUIRE(table.find({a, port}, this_thread, start, found));
    CHECK(found.port == (found.candidates.empty() ? port : 5222));
    return found.candidates.size();
  };
  CHECK(raced_at(shared, 5222) == 2);
  CHECK(raced_at(shared, 5223) == 2);
  CHECK(raced_at(second, 5222) == 2);
  CHECK(raced_at(second, 5223) == 0);  // another's
  CHECK(raced_at(shared, 80) == 0);    // another service
}
