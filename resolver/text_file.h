// A configuration file kept in memory, read again when it has changed.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <string>

#include "resolver/file_version.h"

namespace happy {

class text_file {
 public:
  // Longer files than `limit` bytes count as unreadable.
  text_file(std::string path, std::size_t limit) : path_(std::move(path)), limit_(limit) {}

  // True if what text() or readable() say may have changed. A file that is missing, or that may not
  // be opened, is an empty one, as it is to glibc.
  //
  // Context:  does not wait, not even for a FIFO (which is unreadable).
  bool refresh();

  // Never null; shared, because hosts files can be large.
  const std::shared_ptr<const std::string>& text() const { return text_; }
  bool readable() const { return readable_; }
  // For who keeps what it needs of it: text() is empty from now on, until the file has changed.
  void forget_text() { text_ = std::make_shared<const std::string>(); }

 private:
  // glibc's file_change_detection compares the same.
  struct identity {
    dev_t device = 0;
    file_version version;
    timespec changed{};
  };

  static identity identity_of(const struct stat& s);
  static bool same(const identity& a, const identity& b);
  bool is_unchanged() const;
  void become(identity id, bool readable, std::string text);
  bool load(int fd, std::size_t size, std::string& text) const;

  std::string path_;
  std::size_t limit_;
  bool known_ = false;
  bool readable_ = true;
  identity identity_;
  std::shared_ptr<const std::string> text_ = std::make_shared<const std::string>();
};

}  // namespace happy
