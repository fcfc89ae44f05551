// What bind() was asked for.
#pragma once

namespace happy {

// Whether the last bind() on `fd` named no port. Signal-safe.
bool port_was_left_to_kernel(int fd);

}  // namespace happy
