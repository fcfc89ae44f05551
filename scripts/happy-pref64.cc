// happy-pref64: keeps the NAT64 prefixes that routers advertise (RFC 8781) in a file, for programs under
// libhappy. Needs no privilege; with CAP_NET_RAW it asks the routers once when it starts.
//
//   happy-pref64 [--directory DIR]
//   happy-pref64 --check PREFIXES
//
// The second form says what is wrong with a value of HAPPY_PREF64, for happy-run, which as a script cannot read
// addresses; status 1 if there is something.
//
// One process serves one network namespace, all its interfaces. Ends with a signal; what was heard stays
// in the file until its lifetime is over.

#include <fcntl.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "resolver/netlink/netlink_abi.h"
#include "resolver/pref64_file.h"
#include "resolver/pref64_option.h"
#include "shim/base/real_functions.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

// The functions that the resolver's parts call; here they are libc's own.
happy_real libc_functions() {
  happy_real table{};
  table.open = ::open;
  table.close = ::close;
  table.stat = ::stat;
  table.fstat = ::fstat;
  table.read = ::read;
  table.clock_gettime = ::clock_gettime;
  return table;
}

std::int64_t boot_seconds() {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec;
}

int fail(const char* what) {
  std::fprintf(stderr, "happy-pref64: %s: %s\n", what, std::strerror(errno));
  return 1;
}

bool is_running(std::uint32_t interface) {
  ifreq asked{};
  const unique_fd fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return if_indextoname(interface, asked.ifr_name) != nullptr &&
         ioctl(fd.get(), SIOCGIFFLAGS, &asked) == 0 && (asked.ifr_flags & IFF_RUNNING) != 0;
}

// What is in force, as it goes into the file.
class prefixes {
 public:
  void hear(const happy_netlink_option& o) {
    if (o.size == 0) return lose_link(o.interface);
    const auto option = parse_pref64({o.data, o.size});
    if (!option) return;
    advertiser who{.interface = o.interface};
    std::copy_n(o.router, sizeof o.router, who.router.bytes.begin());
    std::erase_if(
        list_, [&](const stored_prefix& p) { return p.who == who && p.prefix == option->prefix; });
    if (option->lifetime.count() == 0) return;
    if (list_.size() == max_advertised) list_.erase(soonest());
    list_.push_back({who, option->prefix, boot_seconds() + option->lifetime.count()});
  }

  void lose_link(std::uint32_t interface) {
    std::erase_if(list_, [&](const stored_prefix& p) { return p.who.interface == interface; });
  }

  // Links that went away while nobody listened.
  void drop_lost() {
    std::erase_if(list_, [](const stored_prefix& p) { return !is_running(p.who.interface); });
  }

  void drop_expired() {
    const std::int64_t now = boot_seconds();
    std::erase_if(list_, [&](const stored_prefix& p) { return p.expires_s <= now; });
  }

  // Milliseconds until the next one expires; -1: there is none.
  int next_expiry_ms() const {
    if (list_.empty()) return -1;
    const auto first = std::min_element(list_.begin(), list_.end(), expires_before);
    const std::int64_t left = std::max<std::int64_t>(first->expires_s - boot_seconds(), 0);
    constexpr std::int64_t ms_per_s = 1000;
    return static_cast<int>(left * ms_per_s + 1);  // RFC 8781: 65528 s at most
  }

  void load(const std::string& path, std::uint64_t network) {
    const unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid()) return;
    std::string text(max_file, '\0');
    const ssize_t size = ::read(fd.get(), text.data(), text.size());
    if (size <= 0) return;
    text.resize(static_cast<std::size_t>(size));
    if (const auto known = parse_prefixes(text, network))
      list_.assign(known->begin(), known->end());
  }

  // Renamed into place: whoever reads sees the old one or the new one.
  bool save(const std::string& path, std::uint64_t network) {
    const std::string text = format_prefixes(list_, network);
    if (text == saved_) return true;
    const std::string fresh = path + ".new";
    {
      constexpr mode_t mode = 0644;
      const unique_fd fd(
          ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
      if (!fd.valid()) return false;
      if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return false;
    }
    if (std::rename(fresh.c_str(), path.c_str()) != 0) return false;
    saved_ = text;
    return true;
  }

 private:
  static constexpr std::size_t max_file = 16384;

  static bool expires_before(const stored_prefix& a, const stored_prefix& b) {
    return a.expires_s < b.expires_s;
  }
  std::vector<stored_prefix>::iterator soonest() {
    return std::min_element(list_.begin(), list_.end(), expires_before);
  }

  std::vector<stored_prefix> list_;
  std::string saved_;
};

// RFC 4861 s6.3.7: routers answer within half a second. Without the privilege there is only waiting.
void solicit() {
  const unique_fd fd(::socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
  if (!fd.valid()) return;
  const int hops = 255;
  setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops);
  struct if_nameindex* interfaces = if_nameindex();
  for (const struct if_nameindex* i = interfaces; i != nullptr && i->if_index != 0; ++i) {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_scope_id = i->if_index;
    inet_pton(AF_INET6, "ff02::2", &to.sin6_addr);
    nd_router_solicit message{};
    message.nd_rs_type = ND_ROUTER_SOLICIT;
    ::sendto(fd.get(), &message, sizeof message, 0, reinterpret_cast<const sockaddr*>(&to),
             sizeof to);
  }
  if (interfaces != nullptr) if_freenameindex(interfaces);
}

int serve(const std::string& folder) {
  const std::uint64_t network = current_network();
  if (network == 0) return fail("/proc/self/ns/net");
  const std::string path = folder + "/" + std::to_string(network);
  happy_netlink netlink{};
  happy_netlink_start(&netlink);
  int listener = -1;
  if ((errno = netlink.open_advertisements(&listener)) != 0) return fail("listening");
  prefixes known;
  known.load(path, network);
  known.drop_lost();
  known.drop_expired();
  if (!known.save(path, network)) return fail(path.c_str());
  solicit();
  for (;;) {
    pollfd wait{.fd = listener, .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, known.next_expiry_ms());
    happy_netlink_option option{};
    int error = 0;
    while ((error = netlink.read_advertisement(listener, &option)) == 0) known.hear(option);
    if (error != EAGAIN && error != ENOBUFS && error != EINTR) {
      errno = error;
      return fail("listening");
    }
    known.drop_expired();
    if (!known.save(path, network)) return fail(path.c_str());
  }
}

int check(const char* text) {
  prefix_list ignored;
  std::string_view item;
  const prefix_fault fault = read_prefixes(text, ignored, item);
  if (fault == nullptr) return 0;
  std::printf("'%.*s': %s\n", static_cast<int>(item.size()), item.data(), fault);
  return 1;
}

}  // namespace
}  // namespace happy

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--check") == 0) return happy::check(argv[2]);
  static const happy_real functions = happy::libc_functions();
  happy::real = &functions;
  std::string folder = happy::pref64_folder;
  if (argc == 3 && std::strcmp(argv[1], "--directory") == 0) {
    folder = argv[2];
  } else if (argc != 1) {
    std::fputs("happy-pref64: usage: happy-pref64 [--directory DIR] | --check PREFIXES\n", stderr);
    return 2;
  }
  return happy::serve(folder);
}
