// A hold on the socket that a thread is about to connect, while it is judged whether to race it: the real connect(), for
// which the kernel looks the number up, comes some 50 us after the program has called. Another thread may close the fd
// meanwhile, and make something of its own behind it; bare, the kernel would have had the call already.
#pragma once

#include <cstdint>

namespace happy {

// Not copied: whoever leaves connect() without returning gives it back (departure.h).
class socket_hold {
 public:
  // None as yet.
  constexpr socket_hold() = default;
  ~socket_hold() { give_back(); }
  socket_hold(const socket_hold&) = delete;
  socket_hold& operator=(const socket_hold&) = delete;

  // Takes hold of the socket behind `fd`, by a number of its own, if that is one and there are descriptors enough.
  //
  // Context:  signals blocked; four system calls; signal-safe; errno survives.
  void take(int fd);

  // Lets go, unless `fd` shows another socket by now, or none.
  //
  // Context:  three system calls; signal-safe.
  void release_if_behind(int fd);

  // The number by which connect() goes on where the fd is another's: 0 for the fd itself.
  int number() const { return number_; }
  std::uint64_t cookie() const { return cookie_; }  // SO_COOKIE; 0: not a socket

  // Closes the number, if it is the socket's still. No cancellation point; signal-safe.
  void give_back();

 private:
  int number_ = 0;
  std::uint64_t cookie_ = 0;
};

// In a forked child, which has the holds of threads that it does not have.
//
// Context:  the child's only thread; two system calls for each.
void drop_holds_of_parent();

}  // namespace happy
