// The file in which the history outlives a program: happy-history in XDG_RUNTIME_DIR, the user's own and gone
// with the session.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>

#include "resolver/file_version.h"
#include "resolver/history.h"

namespace happy {

inline constexpr char history_file_name[] = "happy-history";

// The file, a page: read and written whole or by records, never mapped (a file cut off under a mapping is
// SIGBUS).
struct history_image {
  char heading[64];
  history_record records[max_history_records];
};
static_assert(sizeof(history_image) == 4096);

// What is not exactly such a file, of this user's alone, in such a folder, is as none.
bool may_keep_history(const struct stat& folder, uid_t user);
bool is_history(const struct stat& file, uid_t user);

// Whether the file is such a one that has come to harm, so that another may take its place: a file, and the user's.
bool may_replace_history(const struct stat& file, uid_t user);

// Everything here is signal-safe, does not allocate, and leaves errno alone.
class history_file {
 public:
  // `folder`: an absolute path that is kept, or nullptr for no file. False: it is too long, or not absolute.
  bool set_folder(const char* folder);
  bool is_kept() const { return path_[0] != 0; }

  // Whether it is another than was read last, or has changed since.
  bool has_changed();

  // False: there is none.
  bool read(history_image& out);

  // Reads, has `change` say which records are new (bits by place), and writes those. Makes the file where there is
  // none, and a new one in the place of one that has come to harm; a folder never. What another process writes at the
  // same time may get lost, never torn: the checksums tell.
  template <typename Change>
  bool update(history_image& image, Change&& change);

 private:
  int open_folder() const;
  static int open_in(int folder, int flags, struct stat& file);
  static int make_in(int folder, struct stat& file);
  static bool load(int fd, history_image& out);
  static bool store(int fd, const void* data, std::size_t size, std::size_t at);
  static bool store_records(int fd, const history_image& image, std::uint64_t which);
  bool open_to_change(history_image& image, int& fd, bool& fresh);
  void finish(int fd, const history_image& image, std::uint64_t which, bool fresh);

  char folder_[256] = {};
  char path_[256 + sizeof history_file_name + 1] = {};
  file_version known_;
};

template <typename Change>
bool history_file::update(history_image& image, Change&& change) {
  int fd = -1;
  bool fresh = false;
  if (!open_to_change(image, fd, fresh)) return false;
  const std::uint64_t which = change(image);
  finish(fd, image, which, fresh);
  return true;
}

}  // namespace happy
