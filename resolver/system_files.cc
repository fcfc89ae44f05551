#include "resolver/system_files.h"

#include <net/if.h>
#include <unistd.h>

#include <cstdlib>

#include "resolver/text_scan.h"

namespace happy {
namespace {

// Many times what anyone writes by hand.
constexpr std::size_t max_small_file = 64 * 1024;

// Lists of a quarter of a million blocked names have about 8 MB; eight bytes of each name stay in memory.
constexpr std::size_t max_hosts_file = 16 * 1024 * 1024;

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// An environment variable has the last word.
bool reorders(const text_file& host_conf) {
  if (const auto said = environment_variable("RESOLV_REORDER"))
    return equal_ignoring_case(said->substr(0, 2), "on");
  return !host_conf.readable() || host_conf_reorders(*host_conf.text());
}

std::string host_name() {
  char name[256];  // as much as glibc asks for
  if (gethostname(name, sizeof name - 1) != 0) return {};
  name[sizeof name - 1] = '\0';
  return name;
}

}  // namespace

system_files::system_files(const std::string& root)
    : resolv_conf_(root + "/etc/resolv.conf", max_small_file),
      nsswitch_conf_(root + "/etc/nsswitch.conf", max_small_file),
      hosts_(root + "/etc/hosts", max_hosts_file),
      gai_conf_(root + "/etc/gai.conf", max_small_file),
      host_conf_(environment_variable("RESOLV_HOST_CONF").value_or(root + "/etc/host.conf"),
                 max_small_file) {}

system_files::surroundings system_files::look_around() {
  return {.host_name = host_name(), .host_aliases = std::getenv("HOSTALIASES") != nullptr};
}

std::shared_ptr<const system_snapshot> system_files::make_snapshot() const {
  auto made = std::make_shared<system_snapshot>();
  if (resolv_conf_.readable()) {
    auto parsed = parse_resolv_conf(*resolv_conf_.text(), resolver_);
    if (auto* config = std::get_if<resolver_config>(&parsed)) {
      config->generation = generation_;
      made->resolver = std::make_shared<const resolver_config>(std::move(*config));
    } else {
      made->resolver = std::get<decline_reason>(parsed);
    }
  }
  if (nsswitch_conf_.readable()) {
    made->services = decline_reason::nsswitch_odd;
    if (auto services = parse_nsswitch(*nsswitch_conf_.text()))
      made->services = std::move(*services);
  }
  made->hosts = hosts_names_;
  made->hosts_unreadable = !hosts_.readable();
  made->gai_conf_reloads = !gai_conf_.readable() || gai_conf_has_reload(*gai_conf_.text());
  made->reorders_hosts = reorders_hosts_;
  made->host_name = surroundings_.host_name;
  made->host_aliases = surroundings_.host_aliases;
  made->generation = generation_;
  return made;
}

std::shared_ptr<const system_snapshot> system_files::current() {
  surroundings now = look_around();
  const bool first = snapshot_ == nullptr;
  bool changed = first || !(now == surroundings_);
  if (resolv_conf_.refresh() || first) {
    resolver_ = {.local_domain = environment_variable("LOCALDOMAIN"),
                 .res_options = environment_variable("RES_OPTIONS"),
                 .host_name = now.host_name,
                 .interface_index = if_nametoindex};
    changed = true;
  }
  if (hosts_.refresh() || hosts_names_ == nullptr) {
    hosts_names_.reset();  // until there is memory for the new ones
    hosts_names_ = std::make_shared<const hosts_names>(*hosts_.text());
    hosts_.forget_text();
    changed = true;
  }
  for (text_file* file : {&nsswitch_conf_, &gai_conf_}) {
    if (file->refresh()) changed = true;
  }
  if (!changed) return snapshot_;
  snapshot_.reset();
  if (first) {
    host_conf_.refresh();
    reorders_hosts_ = reorders(host_conf_);
  }
  surroundings_ = std::move(now);
  ++generation_;
  snapshot_ = make_snapshot();
  return snapshot_;
}

}  // namespace happy
