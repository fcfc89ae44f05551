#include "resolver/addrinfo_list.h"

#include <cstdlib>

#include "shim/base/real_functions.h"

namespace happy {
namespace {

socket_kind kind_of(const addrinfo& entry) {
  endpoint e;
  from_sockaddr(entry.ai_addr, entry.ai_addrlen, e);
  return {entry.ai_socktype, entry.ai_protocol, e.port};
}

// One block, the address behind the entry: the layout that glibc's freeaddrinfo() expects.
addrinfo* make_entry(const endpoint& to, const socket_kind& kind, int flags) {
  const bool is_tcp = kind.socktype == SOCK_STREAM &&
                      (kind.protocol == IPPROTO_TCP || kind.protocol == IPPROTO_MPTCP);
  const bool has_own_port = to.port != 0 && is_tcp;
  const socket_address sa = to_sockaddr({to.address, has_own_port ? to.port : kind.port});
  auto* entry = static_cast<addrinfo*>(std::malloc(sizeof(addrinfo) + sa.length));
  if (entry == nullptr) return nullptr;
  *entry = {};
  entry->ai_flags = flags;
  entry->ai_family = to_af(to.address.family);
  entry->ai_socktype = kind.socktype;
  entry->ai_protocol = kind.protocol;
  entry->ai_addrlen = sa.length;
  entry->ai_addr = reinterpret_cast<sockaddr*>(entry + 1);
  std::memcpy(entry->ai_addr, sa.get(), sa.length);
  return entry;
}

void free_list(addrinfo* list) {
  while (list != nullptr) {
    addrinfo* next = list->ai_next;
    std::free(list->ai_canonname);
    std::free(list);
    list = next;
  }
}

// Appends one address in all its kinds; moves `tail` along.
bool append(addrinfo**& tail, const endpoint& to, const addrinfo_template& form) {
  for (const socket_kind& kind : form.kinds) {
    *tail = make_entry(to, kind, form.flags);
    if (*tail == nullptr) return false;
    tail = &(*tail)->ai_next;
  }
  return true;
}

}  // namespace

// AI_ADDRCONFIG and AI_CANONNAME are about the name and not the service, and cost a netlink dump
// and a copy; AI_PASSIVE and AI_IDN mean nothing to a numeric address.
std::variant<addrinfo_template, int> make_template(const char* service, const addrinfo* hints) {
  addrinfo numeric{};
  addrinfo_template form;
  form.flags = AI_V4MAPPED | AI_ADDRCONFIG;  // glibc's AI_DEFAULT, which has no public name
  if (hints != nullptr) {
    form.flags = hints->ai_flags;
    numeric.ai_family = hints->ai_family;
    numeric.ai_socktype = hints->ai_socktype;
    numeric.ai_protocol = hints->ai_protocol;
  }
  numeric.ai_flags = (form.flags & ~(AI_ADDRCONFIG | AI_CANONNAME)) | AI_NUMERICHOST;

  const char* node = numeric.ai_family == AF_INET6 ? "::1" : "127.0.0.1";
  addrinfo* list = nullptr;
  const int code = real->getaddrinfo(node, service, &numeric, &list);
  if (code != 0) return code;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (!form.kinds.push_back(kind_of(*entry))) break;
  }
  real->freeaddrinfo(list);
  return form;
}

addrinfo* build_addrinfo_list(std::span<const endpoint> addresses, const addrinfo_template& form,
                              const char* canonical_name) {
  addrinfo* list = nullptr;
  addrinfo** tail = &list;
  bool complete = true;
  for (const endpoint& to : addresses) complete = complete && append(tail, to, form);
  if (complete && list != nullptr && canonical_name != nullptr) {
    list->ai_canonname = strdup(canonical_name);
    complete = list->ai_canonname != nullptr;
  }
  if (complete) return list;
  free_list(list);
  return nullptr;
}

}  // namespace happy
