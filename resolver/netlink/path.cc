#include "resolver/netlink/path.h"

#include <linux/tcp_metrics.h>
#include <netlink/attr.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>

#include "resolver/netlink/request.h"

namespace happy::netlink {
namespace {

// The kernel numbers its generic families anew at every start, not in between.
constinit std::atomic<int> family_number{0};

int find_family(const socket& s) {
  int known = family_number.load(std::memory_order_relaxed);
  if (known > 0) return known;
  known = genl_ctrl_resolve(s.get(), TCP_METRICS_GENL_NAME);
  if (known > 0) family_number.store(known, std::memory_order_relaxed);
  return known;
}

// Times are kept as TCP keeps them: eight times the round trip, four times its variance. A nested
// attribute's number is the metric's plus one.
void read_values(nlattr* nested, happy_netlink_path& out) {
  nlattr* values[TCP_METRIC_MAX + 2];
  if (nla_parse_nested(values, TCP_METRIC_MAX + 1, nested, nullptr) < 0) return;
  const auto value = [&](int metric) {
    return values[metric + 1] == nullptr ? 0U : nla_get_u32(values[metric + 1]);
  };
  constexpr std::uint32_t us_per_ms = 1000;
  const std::uint32_t rtt = value(TCP_METRIC_RTT_US);
  const std::uint32_t variance = value(TCP_METRIC_RTTVAR_US);
  out.rtt_us = (rtt != 0 ? rtt : value(TCP_METRIC_RTT) * us_per_ms) >> 3;
  out.rtt_variance_us = (variance != 0 ? variance : value(TCP_METRIC_RTTVAR) * us_per_ms) >> 2;
}

happy_netlink_address read_address(nlattr* const* attributes, int ipv4, int ipv6) {
  const nlattr* a = attributes[ipv4] != nullptr ? attributes[ipv4] : attributes[ipv6];
  if (a == nullptr) return {};
  return to_address(a == attributes[ipv4] ? AF_INET : AF_INET6, nla_data(a),
                    static_cast<std::size_t>(nla_len(a)), 0);
}

int take_path(nlmsghdr* header, void* argument) {
  auto& out = *static_cast<happy_netlink_path*>(argument);
  nlattr* attributes[TCP_METRICS_ATTR_MAX + 1];
  if (genlmsg_parse(header, 0, attributes, TCP_METRICS_ATTR_MAX, nullptr) < 0) return NL_STOP;
  out.source = read_address(attributes, TCP_METRICS_ATTR_SADDR_IPV4, TCP_METRICS_ATTR_SADDR_IPV6);
  if (attributes[TCP_METRICS_ATTR_AGE] != nullptr)
    out.age_ms = static_cast<std::int64_t>(nla_get_u64(attributes[TCP_METRICS_ATTR_AGE]));
  if (attributes[TCP_METRICS_ATTR_VALS] != nullptr)
    read_values(attributes[TCP_METRICS_ATTR_VALS], out);
  return NL_STOP;
}

int put_address(nl_msg* m, const happy_netlink_address& a, int ipv4, int ipv6) {
  const int type = a.family == AF_INET ? ipv4 : ipv6;
  return nla_put(m, type, static_cast<int>(address_size(a.family)), a.bytes);
}

}  // namespace

int find_path(const happy_netlink_address* to, const happy_netlink_address* from,
              happy_netlink_path* out) {
  if (address_size(to->family) == 0) return EAFNOSUPPORT;
  socket s;
  if (const int error = s.open(NETLINK_GENERIC)) return error;
  const int family = find_family(s);
  if (family <= 0) return ENOSYS;
  const message m(nlmsg_alloc());
  if (m == nullptr || genlmsg_put(m.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, 0,
                                  TCP_METRICS_CMD_GET, TCP_METRICS_GENL_VERSION) == nullptr) {
    return ENOMEM;
  }
  if (put_address(m.get(), *to, TCP_METRICS_ATTR_ADDR_IPV4, TCP_METRICS_ATTR_ADDR_IPV6) < 0)
    return ENOMEM;
  if (from != nullptr &&
      put_address(m.get(), *from, TCP_METRICS_ATTR_SADDR_IPV4, TCP_METRICS_ATTR_SADDR_IPV6) < 0) {
    return ENOMEM;
  }
  happy_netlink_path found{};
  const int error = ask(s, m.get(), take_path, &found);
  if (error == ESRCH) return ENOENT;
  if (error == 0) *out = found;
  return error;
}

}  // namespace happy::netlink
