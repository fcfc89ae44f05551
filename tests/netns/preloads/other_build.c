// An engine of another build: it starts, and says that it speaks another version.

#include <stdint.h>

int happy_engine_start(const uint32_t* host_version, uint32_t* own_version) {
  *own_version = *host_version + 1;
  return 0;
}
