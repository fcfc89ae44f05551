#include "resolver/name_plan.h"

#include "tests/support/catch.h"

namespace happy {
namespace {

using namespace std::string_literals;

system_snapshot files_with(const std::string& nsswitch, const std::string& resolv = "",
                           const std::string& hosts = "") {
  system_snapshot files;
  const auto config = parse_resolv_conf(resolv, {});
  if (const auto* c = std::get_if<resolver_config>(&config)) {
    files.resolver = std::make_shared<const resolver_config>(*c);
  } else {
    files.resolver = std::get<decline_reason>(config);
  }
  const auto services = parse_nsswitch("hosts: " + nsswitch + "\n");
  files.services = decline_reason::nsswitch_odd;
  if (services) files.services = *services;
  files.hosts = std::make_shared<const hosts_names>(hosts);
  files.host_name = "myhost";
  return files;
}

// "ask" and the names in their order, "then other modules", or the reason to decline.
std::string judged(const std::string& node, const system_snapshot& files) {
  const auto result = plan_name(node, files);
  if (const auto* reason = std::get_if<decline_reason>(&result)) return to_text(*reason);
  const auto& plan = std::get<name_plan>(result);
  std::string text = "ask";
  for (const search_step& step : plan.steps) text += " " + step.name;
  CHECK(plan.name == plan.steps.front().name);
  if (!plan.nothing_after_dns) text += ", then other modules";
  CHECK(plan.config != nullptr);
  return text;
}

}  // namespace

TEST_CASE("name_plan: a plain system asks the DNS and believes it", "[name_plan]") {
  const system_snapshot files = files_with("files dns");
  CHECK(judged("www.example.com", files) == "ask www.example.com");
  CHECK(judged("www.example.com.", files) == "ask www.example.com");
  CHECK(judged("WWW.Example.COM", files) == "ask WWW.Example.COM");
  CHECK(judged("_sip-x.example", files) == "ask _sip-x.example");
  CHECK(judged("example", files) == "ask example");
}

TEST_CASE("name_plan: what silent nameservers mean to the modules behind dns", "[name_plan]") {
  const auto goes_on = [](const char* line) {
    return std::get<name_plan>(plan_name("www.example.com", files_with(line))).goes_past_silence;
  };
  CHECK(goes_on("files dns other"));
  CHECK(goes_on("files dns [NOTFOUND=return] other"));
  CHECK(!goes_on("files dns [TRYAGAIN=return] other"));
  CHECK(!goes_on("files dns [!SUCCESS=return] other"));
}

TEST_CASE("name_plan: modules that have nothing to say are passed over", "[name_plan]") {
  for (const char* line :
       {"dns", "files dns", "files mdns4_minimal [NOTFOUND=return] dns",
        "files mdns_minimal [NOTFOUND=return] dns", "files mdns6_minimal [NOTFOUND=return] dns",
        "files myhostname dns", "mdns4_minimal files myhostname dns"}) {
    INFO(line);
    CHECK(judged("www.example.com", files_with(line)) == "ask www.example.com");
  }
}

TEST_CASE("name_plan: what comes after dns may still answer", "[name_plan]") {
  for (const char* line : {"dns files", "files dns myhostname", "files dns mymachines",
                           "files dns [NOTFOUND=return] nis"}) {
    INFO(line);
    CHECK(judged("www.example.com", files_with(line)) == "ask www.example.com, then other modules");
  }
}

TEST_CASE("name_plan: modules that may answer before dns are left to glibc", "[name_plan]") {
  for (const char* line :
       {"files resolve [!UNAVAIL=return] dns", "mymachines files dns", "files nis dns", "wins dns",
        "files mdns dns", "files mdns4 dns", "files libvirt dns", "files", "", "files dns2"}) {
    INFO(line);
    CHECK(judged("www.example.com", files_with(line)) == "nsswitch module");
  }
}

TEST_CASE("name_plan: a line on which dns may not be reached is not judged", "[name_plan]") {
  for (const char* line :
       {"files [NOTFOUND=return] dns", "files [UNAVAIL=return] dns", "files [!SUCCESS=return] dns",
        "files [SUCCESS=merge] dns", "files [SUCCESS=continue] dns", "dns [NOTFOUND=merge] files",
        "mdns4_minimal [UNAVAIL=return] dns", "myhostname [NOTFOUND=return] dns",
        "files [NOTFOUND dns"}) {
    INFO(line);
    CHECK(judged("www.example.com", files_with(line)) == "nsswitch not understood");
  }
}

TEST_CASE("name_plan: .local belongs to mDNS where that is installed", "[name_plan]") {
  const system_snapshot files = files_with("files mdns4_minimal [NOTFOUND=return] dns");
  CHECK(judged("printer.local", files) == "nsswitch module");
  CHECK(judged("printer.LOCAL.", files) == "nsswitch module");
  CHECK(judged("a.b.local", files) == "nsswitch module");
  CHECK(judged("printer.mylocal", files) == "ask printer.mylocal");
  CHECK(judged("printer.local.example", files) == "ask printer.local.example");
  CHECK(judged("printer.local", files_with("files dns")) == "ask printer.local");
}

TEST_CASE("name_plan: local names are left to glibc", "[name_plan]") {
  const system_snapshot files = files_with("files dns");
  for (const char* node :
       {"localhost", "LocalHost.", "foo.localhost", "localhost.localdomain",
        "a.localhost.localdomain", "_gateway", "_outbound", "myhost", "MYHOST"}) {
    INFO(node);
    CHECK(judged(node, files) == "local name");
  }
  CHECK(judged("mylocalhost", files) == "ask mylocalhost");
  CHECK(judged("myhost.example", files) == "ask myhost.example");
}

TEST_CASE("name_plan: names in /etc/hosts are left to glibc", "[name_plan]") {
  const system_snapshot files = files_with("files dns", "", "192.0.2.1 www.example.com alias\n");
  CHECK(judged("www.example.com", files) == "in /etc/hosts");
  CHECK(judged("www.example.com.", files) == "in /etc/hosts");
  CHECK(judged("ALIAS", files) == "in /etc/hosts");
  CHECK(judged("example.com", files) == "ask example.com");
}

TEST_CASE("name_plan: the name itself comes first only with enough dots or a final one",
          "[name_plan]") {
  const system_snapshot one = files_with("files dns", "search lan.example\n");
  CHECK(judged("www", one) == "ask www.lan.example www");
  CHECK(judged("www.", one) == "ask www");
  CHECK(judged("www.example.com", one) == "ask www.example.com www.example.com.lan.example");
  CHECK(judged("www.example.com.", one) == "ask www.example.com");
}

TEST_CASE("name_plan: a name that a domain makes too long or odd is left to glibc", "[name_plan]") {
  const std::string label(63, 'a');
  const system_snapshot files = files_with("files dns", "search lan.example\n");
  std::string name = label;
  for (int i = 0; i < 2; ++i) name += "." + label;
  CHECK(judged(name, files) == "ask " + name + " " + name + ".lan.example");
  CHECK(judged(name + "." + std::string(50, 'b'), files) == "search list");
  CHECK(judged("www", files_with("files dns", "search a..b\n")) == "search list");
  CHECK(judged("www", files_with("files dns", "search a*b\n")) == "search list");
  CHECK(judged("www.", files_with("files dns", "search a*b\n")) == "ask www");
}

TEST_CASE("name_plan: HOSTALIASES concerns names without a dot", "[name_plan]") {
  system_snapshot files = files_with("files dns");
  files.host_aliases = true;
  CHECK(judged("www", files) == "HOSTALIASES");
  CHECK(judged("www.", files) == "ask www");
  CHECK(judged("www.example", files) == "ask www.example");
}

TEST_CASE("name_plan: names that glibc may refuse are left to it", "[name_plan]") {
  const system_snapshot files = files_with("files dns");
  const std::string label63(63, 'a');
  const std::string longest = label63 + "." + label63 + "." + label63 + "." + std::string(61, 'a');
  for (const std::string& node : {""s,
                                  "."s,
                                  ".."s,
                                  ".example"s,
                                  "a..b"s,
                                  "a.."s,
                                  "-a.example"s,
                                  "a b"s,
                                  "a\\.b"s,
                                  "b\xc3\xbc.example"s,
                                  "a/b"s,
                                  "a%b"s,
                                  "a:b"s,
                                  "*.example"s,
                                  "a\nb"s,
                                  "a\0b"s,
                                  std::string(64, 'a'),
                                  longest + "a",
                                  std::string(1 << 20, 'a'),
                                  "192.0.2.1"s,
                                  "127.1"s,
                                  "1"s,
                                  "0x7f000001"s,
                                  "0177.0.0.1"s}) {
    INFO(node.substr(0, 80));
    CHECK(judged(node, files) == "bad name");
  }
  CHECK(judged(longest, files) == "ask " + longest);
  CHECK(judged(longest + ".", files) == "ask " + longest);
  CHECK(judged("a-.example", files) == "ask a-.example");
  CHECK(judged("1.2.3.4.5", files) == "ask 1.2.3.4.5");
}

TEST_CASE("name_plan: a file that cannot be judged declines every name", "[name_plan]") {
  system_snapshot files = files_with("files dns");
  SECTION("gai.conf") {
    files.gai_conf_reloads = true;
    CHECK(judged("www.example.com", files) == "gai.conf");
  }
  SECTION("hosts") {
    files.hosts_unreadable = true;
    CHECK(judged("www.example.com", files) == "unreadable file");
  }
  SECTION("resolv.conf") {
    files.resolver = decline_reason::resolver_option;
    CHECK(judged("www.example.com", files) == "resolver option");
  }
  SECTION("nothing was read") {
    CHECK(judged("www.example.com", system_snapshot{}) == "unreadable file");
  }
}

TEST_CASE("name_plan: hosts lines are searched as glibc does, or more widely", "[name_plan]") {
  CHECK(hosts_names("192.0.2.1 a b c").mention("c"));
  CHECK(hosts_names("192.0.2.1\ta\r\n").mention("a"));
  CHECK(hosts_names("  192.0.2.1  a.example.\n").mention("a.example"));
  CHECK(hosts_names("not-an-address a\n").mention("a"));
  CHECK_FALSE(hosts_names("192.0.2.1 b # a\n").mention("a"));
  CHECK_FALSE(hosts_names("# 192.0.2.1 a\n").mention("a"));
  CHECK_FALSE(hosts_names("192.0.2.1 ab\n192.0.2.1 xa\n").mention("a"));
  CHECK_FALSE(hosts_names("192.0.2.1 b\0a\n"s).mention("a"));
  CHECK_FALSE(hosts_names("").mention("a"));
  CHECK(hosts_names(std::string(1 << 20, 'x') + " a").mention("a"));
  CHECK(hosts_names(std::string(1 << 20, '\n') + "192.0.2.1 a").mention("a"));
}

TEST_CASE("name_plan: of a long hosts file each name is found, and no other", "[name_plan]") {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += "0.0.0.0 Blocked" + std::to_string(i) + ".Example\n";
  const hosts_names names(text);
  int found = 0;
  int others = 0;
  for (int i = 0; i < 50000; ++i) {
    found += names.mention("blocked" + std::to_string(i) + ".example.") ? 1 : 0;
    others += names.mention("allowed" + std::to_string(i) + ".example") ? 1 : 0;
  }
  CHECK(found == 50000);
  CHECK(others == 0);
  CHECK(names.mention("0.0.0.0"));
}

TEST_CASE("name_plan: gai.conf may say that it is to be read again", "[name_plan]") {
  CHECK_FALSE(gai_conf_has_reload(""));
  CHECK_FALSE(gai_conf_has_reload("# reload yes\n\n   \n#\n"));
  CHECK_FALSE(gai_conf_has_reload("precedence ::ffff:0:0/96 100\n"));
  CHECK(gai_conf_has_reload("#\n\treload yes"));
}

}  // namespace happy
