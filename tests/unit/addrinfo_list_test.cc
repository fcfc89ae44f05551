#include "resolver/addrinfo_list.h"

#include <string>
#include <vector>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using test::ip;
using test::with_functions;

addrinfo hints_of(int flags, int family, int socktype, int protocol) {
  addrinfo h{};
  h.ai_flags = flags;
  h.ai_family = family;
  h.ai_socktype = socktype;
  h.ai_protocol = protocol;
  return h;
}

// Everything that a program can see of an entry, the sockaddr byte by byte.
std::string describe(const addrinfo* list) {
  std::string text;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    for (int field : {a->ai_flags, a->ai_family, a->ai_socktype, a->ai_protocol,
                      static_cast<int>(a->ai_addrlen)}) {
      text += std::to_string(field) + " ";
    }
    text += a->ai_addr == reinterpret_cast<const sockaddr*>(a + 1) ? "behind " : "apart ";
    const auto* bytes = reinterpret_cast<const unsigned char*>(a->ai_addr);
    for (socklen_t i = 0; i < a->ai_addrlen; ++i) text += std::to_string(bytes[i]) + ".";
    text += a->ai_canonname == nullptr ? " -\n" : std::string(" ") + a->ai_canonname + "\n";
  }
  return text;
}

// Our list against what the real function says of the same numeric address.
void check_same_as_real(const char* node, const char* service, const addrinfo* hints) {
  INFO(node << " " << (service == nullptr ? "-" : service));
  addrinfo* expected = nullptr;
  const int code = ::getaddrinfo(node, service, hints, &expected);
  const auto form = make_template(service, hints);
  if (code != 0) {
    REQUIRE(std::holds_alternative<int>(form));
    CHECK(std::get<int>(form) == code);
    return;
  }
  REQUIRE(std::holds_alternative<addrinfo_template>(form));
  const endpoint addresses[] = {{ip(node), 0}};
  const bool canonical = hints != nullptr && (hints->ai_flags & AI_CANONNAME) != 0;
  addrinfo* list =
      build_addrinfo_list(addresses, std::get<addrinfo_template>(form), canonical ? node : nullptr);
  CHECK(describe(list) == describe(expected));
  ::freeaddrinfo(list);
  ::freeaddrinfo(expected);
}

}  // namespace

TEST_CASE("addrinfo_list: entries are those of the real function, byte by byte",
          "[addrinfo_list]") {
  with_functions functions;
  for (const char* service :
       {static_cast<const char*>(nullptr), "80", "http", "domain", "", "0", "65535"}) {
    for (int socktype : std::initializer_list<int>{0, SOCK_STREAM, SOCK_DGRAM, SOCK_RAW}) {
      for (int protocol : std::initializer_list<int>{0, IPPROTO_TCP, IPPROTO_UDP}) {
        for (int flags :
             {0, AI_CANONNAME, AI_V4MAPPED | AI_ALL, AI_NUMERICHOST | AI_NUMERICSERV, AI_PASSIVE}) {
          for (const char* node : {"192.0.2.1", "2001:db8::1"}) {
            const addrinfo hints = hints_of(flags, AF_UNSPEC, socktype, protocol);
            check_same_as_real(node, service, &hints);
          }
          const addrinfo v4 = hints_of(flags, AF_INET, socktype, protocol);
          check_same_as_real("192.0.2.1", service, &v4);
          const addrinfo v6 = hints_of(flags, AF_INET6, socktype, protocol);
          check_same_as_real("2001:db8::1", service, &v6);
        }
      }
    }
  }
}

TEST_CASE("addrinfo_list: without hints the flags are glibc's defaults", "[addrinfo_list]") {
  with_functions functions;
  check_same_as_real("192.0.2.1", "80", nullptr);
  check_same_as_real("192.0.2.1", nullptr, nullptr);
}

TEST_CASE("addrinfo_list: wrong hints and services get the real function's code",
          "[addrinfo_list]") {
  with_functions functions;
  const addrinfo bad_flags = hints_of(0x4000, AF_UNSPEC, 0, 0);
  check_same_as_real("192.0.2.1", "80", &bad_flags);
  const addrinfo bad_family = hints_of(0, AF_UNIX, 0, 0);
  check_same_as_real("192.0.2.1", "80", &bad_family);
  const addrinfo bad_type = hints_of(0, AF_UNSPEC, 77, 0);
  check_same_as_real("192.0.2.1", "80", &bad_type);
  const addrinfo stream = hints_of(0, AF_UNSPEC, SOCK_STREAM, 0);
  check_same_as_real("192.0.2.1", "no-such-service", &stream);
  const addrinfo numeric = hints_of(AI_NUMERICSERV, AF_UNSPEC, SOCK_STREAM, 0);
  check_same_as_real("192.0.2.1", "http", &numeric);
}

TEST_CASE("addrinfo_list: AI_ADDRCONFIG and AI_CANONNAME stay out of the numeric question",
          "[addrinfo_list]") {
  happy_real functions = test::libc_functions();
  functions.getaddrinfo = [](const char* node, const char* service, const addrinfo* hints,
                             addrinfo** result) {
    CHECK((hints->ai_flags & (AI_ADDRCONFIG | AI_CANONNAME)) == 0);
    CHECK((hints->ai_flags & AI_NUMERICHOST) != 0);
    return ::getaddrinfo(node, service, hints, result);
  };
  with_functions use(functions);
  const addrinfo hints = hints_of(AI_ADDRCONFIG | AI_CANONNAME, AF_UNSPEC, SOCK_STREAM, 0);
  const auto form = make_template("80", &hints);
  REQUIRE(std::holds_alternative<addrinfo_template>(form));
  CHECK(std::get<addrinfo_template>(form).flags == (AI_ADDRCONFIG | AI_CANONNAME));
}

TEST_CASE("addrinfo_list: all kinds of one address come before the next address",
          "[addrinfo_list]") {
  with_functions functions;
  const auto form = make_template("80", nullptr);
  const endpoint addresses[] = {{ip("2001:db8::1"), 5223}, {ip("192.0.2.1"), 0}};
  addrinfo* list =
      build_addrinfo_list(addresses, std::get<addrinfo_template>(form), "canonical.example");
  std::vector<std::pair<int, int>> seen;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    seen.emplace_back(a->ai_family, a->ai_socktype);
    CHECK((a->ai_canonname != nullptr) == (a == list));
    endpoint e;
    REQUIRE(from_sockaddr(a->ai_addr, a->ai_addrlen, e));
    CHECK(e.port == (a == list ? 5223 : 80));  // only TCP has a port of its own
  }
  const std::vector<std::pair<int, int>> expected = {
      {AF_INET6, SOCK_STREAM}, {AF_INET6, SOCK_DGRAM}, {AF_INET6, SOCK_RAW},
      {AF_INET, SOCK_STREAM},  {AF_INET, SOCK_DGRAM},  {AF_INET, SOCK_RAW}};
  CHECK(seen == expected);
  REQUIRE(list != nullptr);
  CHECK(std::string(list->ai_canonname) == "canonical.example");
  ::freeaddrinfo(list);
}

TEST_CASE("addrinfo_list: an endpoint's own port is that of TCP alone", "[addrinfo_list][XMPP-1]") {
  with_functions functions;
  const auto port_for = [](int socktype, int protocol) {
    const addrinfo hints = hints_of(0, AF_INET, socktype, protocol);
    const auto form = make_template("5222", &hints);
    const endpoint to{ip("192.0.2.1"), 5223};
    addrinfo* list = build_addrinfo_list({&to, 1}, std::get<addrinfo_template>(form), nullptr);
    REQUIRE(list != nullptr);
    endpoint e;
    CHECK(from_sockaddr(list->ai_addr, list->ai_addrlen, e));
    ::freeaddrinfo(list);
    return e.port;
  };
  CHECK(port_for(SOCK_STREAM, 0) == 5223);
  CHECK(port_for(SOCK_STREAM, IPPROTO_TCP) == 5223);
  CHECK(port_for(SOCK_DGRAM, 0) == 5222);
  CHECK(port_for(SOCK_SEQPACKET, IPPROTO_SCTP) == 5222);
  CHECK(port_for(SOCK_STREAM, IPPROTO_SCTP) == 5222);
}

TEST_CASE("addrinfo_list: a scoped address keeps its scope", "[addrinfo_list]") {
  with_functions functions;
  const auto form = make_template("80", nullptr);
  endpoint scoped{ip("fe80::1"), 0};
  scoped.address.scope = 7;
  addrinfo* list = build_addrinfo_list({&scoped, 1}, std::get<addrinfo_template>(form), nullptr);
  REQUIRE(list != nullptr);
  CHECK(reinterpret_cast<const sockaddr_in6*>(list->ai_addr)->sin6_scope_id == 7);
  CHECK(reinterpret_cast<const sockaddr_in6*>(list->ai_addr)->sin6_flowinfo == 0);
  ::freeaddrinfo(list);
}

TEST_CASE("addrinfo_list: no address gives no list", "[addrinfo_list]") {
  with_functions functions;
  const auto form = make_template("80", nullptr);
  CHECK(build_addrinfo_list({}, std::get<addrinfo_template>(form), "name") == nullptr);
}

}  // namespace happy
