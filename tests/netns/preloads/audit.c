// An LD_AUDIT library: says by which name the loader gets each library, as a debugger is told at that moment.

#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>

unsigned la_version(unsigned version) { return version; }

unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)space, (void)cookie;
  dprintf(1, "opened %s\n", map->l_name);
  return 0;
}
