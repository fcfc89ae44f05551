#include "resolver/name_search.h"

#include "tests/support/catch.h"

namespace happy {
namespace {

resolver_config config_of(const std::string& text) {
  return std::get<resolver_config>(parse_resolv_conf(text, {}));
}

// The names in order, those from the list in brackets.
std::string steps(const std::string& name, const std::string& resolv_conf, bool absolute = false) {
  std::string text;
  for (const search_step& s : search_steps(name, absolute, config_of(resolv_conf)))
    text += (text.empty() ? "" : " ") + (s.from_list() ? "[" + s.name + "]" : s.name);
  return text;
}

// What is asked when the verdicts come in this order (n, d, s, t, u, h), and which holds in the end.
std::string searched(const std::string& name, const std::string& resolv_conf,
                     const std::string& verdicts) {
  const std::string letters = "ndstuh";  // in the order of name_verdict
  name_search search(search_steps(name, false, config_of(resolv_conf)));
  std::string text;
  for (const char letter : verdicts) {
    text += search.name() + " ";
    if (!search.go_on(static_cast<name_verdict>(letters.find(letter)))) break;
  }
  return text + letters[static_cast<std::size_t>(search.result())];
}

}  // namespace

TEST_CASE("name_search: ndots decides whether the name itself is first or last", "[name_search]") {
  CHECK(steps("host", "search a b\n") == "[host.a] [host.b] host");
  CHECK(steps("x.host", "search a b\n") == "x.host [x.host.a] [x.host.b]");
  CHECK(steps("x.host", "search a b\noptions ndots:2\n") == "[x.host.a] [x.host.b] x.host");
  CHECK(steps("x.y.host", "search a\noptions ndots:2\n") == "x.y.host [x.y.host.a]");
  CHECK(steps("host", "search a\noptions ndots:0\n") == "host [host.a]");
  CHECK(steps("host", "search a b\n", true) == "host");
  CHECK(steps("host", "") == "host");
}

TEST_CASE("name_search: the root on the list is the name itself", "[name_search]") {
  CHECK(searched("host", "search .\n", "nn") == "host n");
  CHECK(searched("host", "search a . b\n", "nnnn") == "host.a host host.b n");
  CHECK(searched("host", "search a . b\n", "tn") == "host.a host n");
  CHECK(searched("host", "search a . b\n", "ntn") == "host.a host t");
  CHECK(steps("x.host", "search .\n") == "x.host [x.host]");
  CHECK(steps("host", "search .a a.\n") == "[host.a] [host.a] host");
}

TEST_CASE("name_search: no-tld-query spares a name without dots", "[name_search]") {
  CHECK(steps("host", "search a\noptions no-tld-query\n") == "[host.a]");
  CHECK(steps("x.host", "search a\noptions no-tld-query ndots:3\n") == "[x.host.a] x.host");
  CHECK(steps("host", "options no-tld-query\n") == "host");
}

TEST_CASE("name_search: it goes on after NXDOMAIN, NODATA and SERVFAIL", "[name_search]") {
  CHECK(searched("host", "search a b\n", "nnn") == "host.a host.b host n");
  CHECK(searched("host", "search a b\n", "dnn") == "host.a host.b host d");
  CHECK(searched("host", "search a b\n", "snn") == "host.a host.b host s");
  CHECK(searched("host", "search a b\n", "sdn") == "host.a host.b host d");
  CHECK(searched("host", "search a b\n", "nnd") == "host.a host.b host d");
  CHECK(searched("host", "search a b\n", "nns") == "host.a host.b host s");
}

TEST_CASE("name_search: what was said of the name itself first holds in the end", "[name_search]") {
  CHECK(searched("x.host", "search a b\n", "nds") == "x.host x.host.a x.host.b n");
  CHECK(searched("x.host", "search a b\n", "dnn") == "x.host x.host.a x.host.b d");
  CHECK(searched("x.host", "search a b\n", "snn") == "x.host x.host.a x.host.b s");
}

TEST_CASE("name_search: silence ends the list, and the name itself is tried all the same",
          "[name_search]") {
  CHECK(searched("host", "search a b c\n", "tn") == "host.a host n");
  CHECK(searched("host", "search a b c\n", "ndtn") == "host.a host.b host.c host d");
  CHECK(searched("host", "search a b c\n", "tt") == "host.a host t");
  CHECK(searched("x.host", "search a b c\n", "nt") == "x.host x.host.a n");
  CHECK(searched("x.host", "search a b\n", "tnn") == "x.host x.host.a x.host.b t");
}

TEST_CASE("name_search: where nobody listens the list is left at once", "[name_search]") {
  CHECK(searched("host", "search a b\n", "u") == "host.a u");
  CHECK(searched("host", "search a b\n", "du") == "host.a host.b u");
  CHECK(searched("x.host", "search a b\n", "uu") == "x.host x.host.a u");
}

TEST_CASE("name_search: records without an address are an answer", "[name_search]") {
  CHECK(searched("host", "search a b\n", "nh") == "host.a host.b h");
  CHECK(searched("x.host", "search a b\n", "h") == "x.host h");
}

}  // namespace happy
