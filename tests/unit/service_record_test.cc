// RDATA of SVCB, HTTPS and SRV records.

#include "resolver/service_record.h"

#include <string>
#include <vector>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/dns_message.h"

namespace happy {
namespace {

using bytes = std::vector<std::uint8_t>;
using test::ip;

void append(bytes& to, const bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

// Builds RDATA from a target and parameters in the order given.
class svcb {
 public:
  explicit svcb(unsigned priority, const std::string& target = "") {
    rdata_ = {static_cast<std::uint8_t>(priority >> 8), static_cast<std::uint8_t>(priority)};
    append(rdata_, test::dns_message::wire_name(target));
  }
  svcb& with(unsigned key, const bytes& value) {
    append(rdata_, {static_cast<std::uint8_t>(key >> 8), static_cast<std::uint8_t>(key), 0,
                    static_cast<std::uint8_t>(value.size())});
    append(rdata_, value);
    return *this;
  }
  std::optional<service_record> parsed() const { return parse_svcb(rdata_); }
  bool malformed() const { return !parsed(); }
  bool usable() const { return parsed().value().usable; }

 private:
  bytes rdata_;
};

const bytes h2 = {2, 'h', '2'};
const bytes h3 = {2, 'h', '3'};

}  // namespace

TEST_CASE("svcb: everything that a record can say", "[svcb][SVCB-4]") {
  const auto r = svcb(16, "Foo.Example.ORG")
                     .with(1, h2)
                     .with(3, {0x20, 0xfb})
                     .with(4, {192, 0, 2, 1, 192, 0, 2, 2})
                     .with(5, {0, 1, 2})
                     .with(6, {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
                     .with(667, {1})
                     .parsed();
  REQUIRE(r);
  CHECK(r->priority == 16);
  CHECK(r->target == "foo.example.org");
  CHECK(r->port == 8443);
  CHECK(r->usable);
  REQUIRE(r->hints.size() == 3);
  CHECK(r->hints[0] == ip("192.0.2.1"));
  CHECK(r->hints[1] == ip("192.0.2.2"));
  CHECK(r->hints[2] == ip("2001:db8::1"));
}

TEST_CASE("svcb: an alias has a target and nothing else", "[svcb][SVCB-1]") {
  const auto r = svcb(0, "svc.example").with(3, {0, 80}).parsed();
  REQUIRE(r);
  CHECK(r->priority == 0);
  CHECK(r->target == "svc.example");
  CHECK(r->port == 0);
}

TEST_CASE("svcb: \".\" is an empty target", "[svcb][SVCB-4]") {
  CHECK(svcb(1).parsed()->target.empty());
  CHECK(svcb(1).usable());
}

TEST_CASE("svcb: malformed in every way", "[svcb][SVCB-4]") {
  // RFC 9460 s2.2: the end within a parameter, keys not in strictly increasing order, a value of the wrong form
  CHECK_FALSE(parse_svcb({}));
  CHECK_FALSE(parse_svcb(bytes{0, 1}));
  CHECK_FALSE(parse_svcb(bytes{0, 1, 3, 'f', 'o'}));
  CHECK_FALSE(parse_svcb(bytes{0, 1, 0xc0, 0x0c}));
  CHECK_FALSE(parse_svcb(bytes{0, 1, 0x40, 0}));
  CHECK_FALSE(parse_svcb(bytes{0, 1, 0, 0, 3}));
  CHECK_FALSE(parse_svcb(bytes{0, 1, 0, 0, 3, 0, 2, 0}));
  CHECK(svcb(1).with(3, {0, 80}).with(1, h2).malformed());
  CHECK(svcb(1).with(3, {0, 80}).with(3, {0, 80}).malformed());
  CHECK(svcb(1).with(0, {}).malformed());
  CHECK(svcb(1).with(0, {0}).malformed());
  CHECK(svcb(1).with(0, {0, 0}).malformed());
  CHECK(svcb(1).with(0, {0, 3, 0, 1}).with(1, h2).with(3, {0, 80}).malformed());
  CHECK(svcb(1).with(0, {0, 3, 0, 3}).with(3, {0, 80}).malformed());
  CHECK(svcb(1).with(1, {}).malformed());
  CHECK(svcb(1).with(1, {0}).malformed());
  CHECK(svcb(1).with(1, {3, 'h', '2'}).malformed());
  CHECK(svcb(1).with(2, {1}).malformed());
  CHECK(svcb(1).with(3, {80}).malformed());
  CHECK(svcb(1).with(3, {0, 0, 80}).malformed());
  CHECK(svcb(1).with(4, {}).malformed());
  CHECK(svcb(1).with(4, {192, 0, 2}).malformed());
  CHECK(svcb(1).with(5, {}).malformed());
  CHECK(svcb(1).with(6, {192, 0, 2, 1}).malformed());
}

TEST_CASE("svcb: a name longer than names can be is malformed", "[svcb][SVCB-4]") {
  std::string name;
  for (int i = 0; i < 3; ++i) name += std::string(63, 'a') + '.';
  CHECK_FALSE(svcb(1, name + std::string(61, 'b')).malformed());
  CHECK(svcb(1, name + std::string(62, 'b')).malformed());
}

TEST_CASE("svcb: what is mandatory must be known and present", "[svcb][SVCB-4]") {
  CHECK(svcb(1).with(0, {0, 1, 0, 3}).with(1, h2).with(3, {0, 80}).usable());
  CHECK_FALSE(svcb(1).with(0, {2, 0x9b}).with(667, {1}).usable());
  CHECK_FALSE(svcb(1).with(0, {0, 3}).usable());
}

TEST_CASE("svcb: something must be left for TCP", "[svcb][SVCB-5]") {
  // hev3 Handling ALPN; RFC 9460 s9.1: https has http/1.1 unless no-default-alpn says otherwise
  CHECK(svcb(1).with(1, h3).usable());
  CHECK(svcb(1).with(1, {2, 'h', '3', 2, 'h', '2'}).with(2, {}).usable());
  CHECK_FALSE(svcb(1).with(1, h3).with(2, {}).usable());
  CHECK_FALSE(svcb(1).with(1, {5, 'h', '3', '-', '2', '9', 2, 'h', '3'}).with(2, {}).usable());
  CHECK(svcb(1).with(1, {3, 'h', '3', 'x'}).with(2, {}).usable());
  CHECK_FALSE(svcb(1).with(2, {}).usable());
}

TEST_CASE("svcb: targets that cannot be asked for are not usable", "[svcb][SVCB-4]") {
  CHECK_FALSE(svcb(1, "a b.example").usable());
  CHECK(svcb(1, "_8443._https.example").usable());
}

TEST_CASE("svcb: hints are bounded for each family", "[svcb][SVCB-2]") {
  bytes many(4 * 20, 1);
  const auto r = svcb(1).with(4, many).with(6, bytes(16, 2)).parsed();
  REQUIRE(r);
  CHECK(r->hints.size() == max_hints + 1);
  CHECK(r->hints[max_hints].family == family::ipv6);
}

TEST_CASE("srv: priority, weight, port, target", "[srv][XMPP-1]") {
  bytes rdata = {0, 5, 0, 10, 0x14, 0x66};
  append(rdata, test::dns_message::wire_name("XMPP.example.com"));
  const auto r = parse_srv(rdata, 0, rdata.size());
  REQUIRE(r);
  CHECK(r->priority == 5);
  CHECK(r->weight == 10);
  CHECK(r->port == 5222);
  CHECK(r->target == "xmpp.example.com");
  CHECK(r->usable);
  for (std::size_t size = 0; size < rdata.size(); ++size) CHECK_FALSE(parse_srv(rdata, 0, size));
  rdata.push_back(0);
  CHECK_FALSE(parse_srv(rdata, 0, rdata.size()));
}

TEST_CASE("srv: a target may be compressed, backwards only", "[srv][XMPP-1]") {
  bytes packet = test::dns_message::wire_name("example.com");
  const std::size_t at = packet.size();
  append(packet, {0, 1, 0, 0, 0x14, 0x66, 4, 'x', 'm', 'p', 'p', 0xc0, 0});
  const auto r = parse_srv(packet, at, packet.size() - at);
  REQUIRE(r);
  CHECK(r->target == "xmpp.example.com");
  packet.back() = static_cast<std::uint8_t>(at + 6);  // a loop
  CHECK_FALSE(parse_srv(packet, at, packet.size() - at));
}

TEST_CASE("srv: \".\" says that there is no such service", "[srv][XMPP-6]") {
  const bytes rdata = {0, 0, 0, 0, 0, 0, 0};
  CHECK_FALSE(parse_srv(rdata, 0, rdata.size()).value().usable);
}

}  // namespace happy
