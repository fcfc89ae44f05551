/* The C header between the engine and libhappy-netlink.so, the one object that is linked against libnl. The
 * engine loads it only when a question comes up that a cheap probe cannot answer: a family seems missing,
 * NAT64, a path's history. Without it those features are absent and nothing else changes.
 *
 * Every call asks the kernel anew by a socket of its own, waits for it at most HAPPY_NETLINK_PATIENCE_MS (the
 * kernel answers inside the call that asks), allocates, and leaves no descriptor open. They return 0 or an
 * errno, and touch their output only on success. Any thread may call them, several at a time.
 */
#ifndef HAPPY_NETLINK_ABI_H
#define HAPPY_NETLINK_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAPPY_NETLINK_ABI_VERSION 2u
#define HAPPY_NETLINK_PATIENCE_MS 200

/* AF_INET addresses occupy the first 4 bytes. */
struct happy_netlink_address {
  int32_t family; /* AF_INET, AF_INET6; 0: none */
  uint8_t bytes[16];
  uint32_t interface; /* 0: not said */
};

/* An address of this host. */
struct happy_netlink_own_address {
  struct happy_netlink_address where;
  uint8_t prefix_length;
  uint8_t scope;  /* RT_SCOPE_UNIVERSE, _LINK, _HOST ... */
  uint32_t flags; /* IFA_F_TEMPORARY, _DEPRECATED, _TENTATIVE ... */
  int64_t age_ms; /* since the kernel got it (IFA_CACHEINFO); -1: not said */
};

/* A host on many networks has a dozen; of more the rest is not looked at. */
#define HAPPY_NETLINK_MAX_ADDRESSES 64

/* What one family can do. */
struct happy_netlink_family {
  int32_t has_address; /* one that is no loopback or link-local address, and usable */
  int32_t has_route;   /* QUERY-1: one that is neither loopback nor link-local */
  int32_t has_default_route;
  struct happy_netlink_address gateway; /* of the default route; family 0: none (a tunnel) */
};

struct happy_netlink_network {
  struct happy_netlink_family ipv4;
  struct happy_netlink_family ipv6;
  uint32_t address_count;
  struct happy_netlink_own_address addresses[HAPPY_NETLINK_MAX_ADDRESSES];
  /* Which network this host is attached to: equal while gateways, their link-layer addresses and the on-link
   * prefixes are. 0: no default route. */
  uint64_t fingerprint;
};

/* How the kernel would send to a destination. */
struct happy_netlink_route {
  int32_t reachable; /* 0: no route, or one of the kind `unreachable`, `prohibit`, `blackhole` */
  int32_t is_local;  /* an address of this host */
  uint32_t interface;
  uint8_t prefix_length;                /* of the route that applies; 0: the default route */
  struct happy_netlink_address gateway; /* family 0: on link */
  struct happy_netlink_address source;  /* family 0: the kernel does not say */
};

/* What the kernel remembers of the TCP connections to a destination. */
struct happy_netlink_path {
  struct happy_netlink_address source; /* family 0: kept for all sources */
  uint32_t rtt_us;                     /* 0: not known */
  uint32_t rtt_variance_us;            /* 0: not known */
  int64_t age_ms;                      /* since it was last updated */
};

/* An option of a router advertisement as it came: type, length in units of 8 bytes, contents. Or, of size 0, that the
 * link is down or gone, and with it what was advertised there: the next one may be to another network. */
struct happy_netlink_option {
  uint32_t interface;
  uint8_t router[16]; /* the link-local address that sent it; zeros: not said */
  uint32_t size;      /* of data, in bytes */
  uint8_t data[256];
};

struct happy_netlink {
  uint32_t abi_version;
  int (*read_network)(struct happy_netlink_network* out);
  /* ENETUNREACH and the like are no errors: the answer says so. */
  int (*find_route)(const struct happy_netlink_address* to, struct happy_netlink_route* out);
  /* ENOENT: nothing is remembered. `from` may be NULL: any source. */
  int (*find_path)(const struct happy_netlink_address* to, const struct happy_netlink_address* from,
                   struct happy_netlink_path* out);

  /* A socket, close-on-exec and non-blocking, that becomes readable when a router says something (RTNLGRP_ND_USEROPT)
   * or a link changes: one for both, so that their order is kept. The caller's to hide and close. */
  int (*open_advertisements)(int* fd);
  /* The next option: EAGAIN when there is none. ENOBUFS: some were lost. Needs no other state than `fd`. */
  int (*read_advertisement)(int fd, struct happy_netlink_option* out);

  /* The same for changes of addresses and routes. read_change() takes all that is there; EAGAIN: nothing. */
  int (*open_changes)(int* fd);
  int (*read_change)(int fd);
};

/* The only export. */
int happy_netlink_start(struct happy_netlink* out);

#ifdef __cplusplus
}
#endif

#endif
