#include "resolver/answer_cache.h"

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using std::chrono::seconds;
using test::ip;

constexpr std::uint64_t files = 1;

time_point at(int ms) { return time_point(seconds(1000) + milliseconds(ms)); }

answer positive(std::initializer_list<const char*> addresses, int ttl = 300) {
  answer a;
  a.type = record_type::a;
  a.kind = answer_kind::positive;
  for (const char* text : addresses) a.addresses.push_back(ip(text));
  a.canonical_name = "end.example";
  a.ttl = seconds(ttl);
  return a;
}

answer negative(answer_kind kind) {
  answer a;
  a.type = record_type::a;
  a.kind = kind;
  return a;
}

}  // namespace

TEST_CASE("answer_cache: a positive answer lives for its TTL, at most a minute", "[answer_cache]") {
  answer_cache cache;
  cache.keep("a.example", positive({"192.0.2.1"}, 5), files, at(0));
  cache.keep("b.example", positive({"192.0.2.2"}, 300), files, at(0));
  cache.keep("c.example", positive({"192.0.2.3"}, 0), files, at(0));
  const auto known = cache.find("A.Example", record_type::a, files, at(3000));
  REQUIRE(known.has_value());
  CHECK(known->addresses[0] == ip("192.0.2.1"));
  CHECK(known->canonical_name == "end.example");
  CHECK(known->ttl == seconds(2));
  CHECK_FALSE(cache.find("a.example", record_type::a, files, at(5000)).has_value());
  CHECK(cache.find("b.example", record_type::a, files, at(59'999)).has_value());
  CHECK_FALSE(cache.find("b.example", record_type::a, files, at(60'000)).has_value());
  CHECK_FALSE(cache.find("c.example", record_type::a, files, at(0)).has_value());
}

TEST_CASE("answer_cache: a negative answer lives for a second, a failure not at all",
          "[answer_cache]") {
  for (const answer_kind kind :
       {answer_kind::no_data, answer_kind::name_error, answer_kind::hollow}) {
    answer_cache cache;
    cache.keep("a.example", negative(kind), files, at(0));
    CHECK(cache.find("a.example", record_type::a, files, at(999)).has_value());
    CHECK_FALSE(cache.find("a.example", record_type::a, files, at(1000)).has_value());
  }
  for (const answer_kind kind : {answer_kind::server_failure, answer_kind::timed_out,
                                 answer_kind::odd, answer_kind::not_sent}) {
    answer_cache cache;
    cache.keep("a.example", negative(kind), files, at(0));
    CHECK_FALSE(cache.find("a.example", record_type::a, files, at(0)).has_value());
  }
}

TEST_CASE("answer_cache: another name, type or state of the files is another question",
          "[answer_cache]") {
  answer_cache cache;
  cache.keep("a.example", positive({"192.0.2.1"}), files, at(0));
  CHECK_FALSE(cache.find("a.example", record_type::aaaa, files, at(1)).has_value());
  CHECK_FALSE(cache.find("b.example", record_type::a, files, at(1)).has_value());
  CHECK_FALSE(cache.find("a.exampl", record_type::a, files, at(1)).has_value());
  CHECK_FALSE(cache.find("a.example", record_type::a, files + 1, at(1)).has_value());
  CHECK_FALSE(cache.find("a.example", record_type::a, files, at(1)).has_value());  // gone for good
}

TEST_CASE("answer_cache: addresses rotate where the nameserver rotates them", "[answer_cache]") {
  answer_cache cache;
  const auto first = [&](int ms) {
    const auto known = cache.find("a.example", record_type::a, files, at(ms));
    return known ? known->addresses[0] : address{};
  };
  cache.keep("a.example", positive({"192.0.2.1", "192.0.2.2", "192.0.2.3"}, 1), files, at(0));
  CHECK(first(1) == ip("192.0.2.1"));
  CHECK(first(2) == ip("192.0.2.1"));
  cache.keep("a.example", positive({"192.0.2.2", "192.0.2.3", "192.0.2.1"}, 1), files, at(2000));
  CHECK(first(2001) == ip("192.0.2.3"));
  CHECK(first(2002) == ip("192.0.2.1"));
  CHECK(first(2003) == ip("192.0.2.2"));
}

TEST_CASE("answer_cache: a name is dropped with what search domains made of it", "[answer_cache]") {
  answer_cache cache;
  for (const char* name : {"host", "host.example", "hostess.example", "other.host"})
    cache.keep(name, positive({"192.0.2.1"}), files, at(0));
  cache.drop("HOST.");
  CHECK_FALSE(cache.find("host", record_type::a, files, at(1)).has_value());
  CHECK_FALSE(cache.find("host.example", record_type::a, files, at(1)).has_value());
  CHECK(cache.find("hostess.example", record_type::a, files, at(1)).has_value());
  CHECK(cache.find("other.host", record_type::a, files, at(1)).has_value());
}

TEST_CASE("answer_cache: it is bounded, and what ends first goes first", "[answer_cache]") {
  answer_cache cache;
  cache.keep("short.example", positive({"192.0.2.1"}, 2), files, at(0));
  for (std::size_t i = 1; i < max_cached_answers; ++i)
    cache.keep(std::to_string(i) + ".example", positive({"192.0.2.1"}, 50), files, at(0));
  CHECK(cache.find("short.example", record_type::a, files, at(1)).has_value());
  cache.keep("new.example", positive({"192.0.2.1"}, 50), files, at(1));
  CHECK(cache.find("new.example", record_type::a, files, at(2)).has_value());
  CHECK_FALSE(cache.find("short.example", record_type::a, files, at(2)).has_value());
  CHECK(cache.find("1.example", record_type::a, files, at(2)).has_value());
}

TEST_CASE("answer_cache: what the process knows is forgotten at once", "[answer_cache]") {
  keep_known_answer("process.example", positive({"192.0.2.1"}), files, at(0));
  CHECK(find_known_answer("process.example", record_type::a, files, at(1)).has_value());
  forget_known_answers();
  CHECK_FALSE(find_known_answer("process.example", record_type::a, files, at(1)).has_value());
  keep_known_answer("process.example", positive({"192.0.2.1"}), files, at(0));
  drop_known_answers("process.example");
  CHECK_FALSE(find_known_answer("process.example", record_type::a, files, at(1)).has_value());
  forget_known_answers();
}

}  // namespace happy
