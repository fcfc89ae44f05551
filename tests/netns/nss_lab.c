// A name service module for tests, "lab" in nsswitch.conf: an answerer that knows names of its own, as nss-mdns does.
//
//   quick.local        an IPv4 address at once, and none in IPv6
//   slow.local         the same, but it takes a second to say that there is no IPv6 address
//   anything else      not found

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <nss.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS "198.51.100.77"

struct answer {
  char* no_alias[1];
  char* addresses[2];
  struct in_addr address;
  char name[64];
};

enum nss_status _nss_lab_gethostbyname2_r(const char* name, int af, struct hostent* host,
                                          char* buffer, size_t size, int* error,
                                          int* resolver_error) {
  const int slow = !strcmp(name, "slow.local");
  if (!slow && strcmp(name, "quick.local")) {
    *resolver_error = HOST_NOT_FOUND;
    return NSS_STATUS_NOTFOUND;
  }
  if (af != AF_INET) {
    if (slow) sleep(1);
    *resolver_error = NO_DATA;
    return NSS_STATUS_NOTFOUND;
  }
  const size_t skipped = -(uintptr_t)buffer % _Alignof(struct answer);
  if (size < skipped + sizeof(struct answer)) {
    *error = ERANGE;
    *resolver_error = NETDB_INTERNAL;
    return NSS_STATUS_TRYAGAIN;
  }
  struct answer* answer = (struct answer*)(void*)(buffer + skipped);
  memset(answer, 0, sizeof *answer);
  inet_pton(AF_INET, ADDRESS, &answer->address);
  strcpy(answer->name, name);
  answer->addresses[0] = (char*)&answer->address;
  *host = (struct hostent){.h_name = answer->name,
                           .h_aliases = answer->no_alias,
                           .h_addrtype = AF_INET,
                           .h_length = sizeof answer->address,
                           .h_addr_list = answer->addresses};
  return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_lab_gethostbyname_r(const char* name, struct hostent* host, char* buffer,
                                         size_t size, int* error, int* resolver_error) {
  return _nss_lab_gethostbyname2_r(name, AF_INET, host, buffer, size, error, resolver_error);
}
