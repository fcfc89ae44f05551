// MSG_FASTOPEN: data that is to go with the SYN. Without a cookie of the server's, which a client has at its second
// connection at the earliest, the kernel takes none, and the call is a connect(): on a socket that does not block it is
// raced as one (wget2).
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

namespace happy {

// The real sendto() or sendmsg() of the data, to another address where that is given. A cancellation point.
struct data_sender {
  ssize_t (*send)(void* how, const sockaddr* to, socklen_t length);
  void* how;
};

// Sends once. Returns what that did, or -1 and errno as connect() has them.
ssize_t open_fast(int fd, const sockaddr* to, socklen_t length, const data_sender& data);

}  // namespace happy
