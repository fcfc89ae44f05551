// The hooks of exec(): the program becomes another, which has its sockets and no libhappy that knows of them yet. One
// that shows nothing while its race is on (racer/veiled_connect.h) would show nothing for ever.
//
// posix_spawn() and children made by vfork() leave the race to their parent, which goes on.

#include <alloca.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>

#include "shim/late_function.h"
#include "shim/pending.h"

namespace happy {
namespace {

using words = char* const*;

constinit late_function<int (*)(const char*, words, words)> real_execve{"execve"};
constinit late_function<int (*)(const char*, words)> real_execv{"execv"};
constinit late_function<int (*)(const char*, words)> real_execvp{"execvp"};
constinit late_function<int (*)(const char*, words, words)> real_execvpe{"execvpe"};
constinit late_function<int (*)(int, words, words)> real_fexecve{"fexecve"};
constinit late_function<int (*)(int, const char*, words, words, int)> real_execveat{"execveat"};

// Calls `exec(array, rest)` with the words of a variadic call and what is left of it behind their null. They lie on the
// stack, as libc has them: nothing can be allocated in a child of vfork().
template <typename Exec>
int with_words(const char* first, va_list others, Exec&& exec) {
  std::size_t count = 1;
  va_list counted;
  va_copy(counted, others);
  for (const char* word = first; word != nullptr; word = va_arg(counted, char*)) ++count;
  va_end(counted);
  auto** const array = static_cast<char**>(alloca(count * sizeof(char*)));
  array[0] = const_cast<char*>(first);
  for (std::size_t i = 1; i < count; ++i) array[i] = va_arg(others, char*);
  return exec(array, others);
}

}  // namespace
}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) int execve(const char* path, char* const* words,
                                                  char* const* variables) noexcept {
  happy::note_exec();
  return happy::real_execve.get()(path, words, variables);
}

__attribute__((visibility("default"))) int execv(const char* path, char* const* words) noexcept {
  happy::note_exec();
  return happy::real_execv.get()(path, words);
}

__attribute__((visibility("default"))) int execvp(const char* name, char* const* words) noexcept {
  happy::note_exec();
  return happy::real_execvp.get()(name, words);
}

__attribute__((visibility("default"))) int execvpe(const char* name, char* const* words,
                                                   char* const* variables) noexcept {
  happy::note_exec();
  return happy::real_execvpe.get()(name, words, variables);
}

__attribute__((visibility("default"))) int fexecve(int fd, char* const* words,
                                                   char* const* variables) noexcept {
  happy::note_exec();
  return happy::real_fexecve.get()(fd, words, variables);
}

__attribute__((visibility("default"))) int execveat(int folder, const char* path,
                                                    char* const* words, char* const* variables,
                                                    int flags) noexcept {
  happy::note_exec();
  return happy::real_execveat.get()(folder, path, words, variables, flags);
}

__attribute__((visibility("default"))) int execl(const char* path, const char* first,
                                                 ...) noexcept {
  happy::note_exec();
  va_list others;
  va_start(others, first);
  const int result = happy::with_words(first, others, [&](char* const* array, va_list) {
    return happy::real_execv.get()(path, array);
  });
  va_end(others);
  return result;
}

__attribute__((visibility("default"))) int execlp(const char* name, const char* first,
                                                  ...) noexcept {
  happy::note_exec();
  va_list others;
  va_start(others, first);
  const int result = happy::with_words(first, others, [&](char* const* array, va_list) {
    return happy::real_execvp.get()(name, array);
  });
  va_end(others);
  return result;
}

__attribute__((visibility("default"))) int execle(const char* path, const char* first,
                                                  ...) noexcept {
  happy::note_exec();
  va_list others;
  va_start(others, first);
  const int result = happy::with_words(first, others, [&](char* const* array, va_list rest) {
    return happy::real_execve.get()(path, array, va_arg(rest, char* const*));
  });
  va_end(others);
  return result;
}

}  // extern "C"
