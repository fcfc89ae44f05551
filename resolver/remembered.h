// What this process knows of the history, and its part in it: the file, the network, the kernel's round-trip
// times. Where another thread is in one of these, each of them does nothing.
#pragma once

#include <span>
#include <string_view>

#include "resolver/address_order.h"
#include "resolver/history.h"

namespace happy {

// How long what was found out of the file and of the network holds.
inline constexpr duration history_freshness = std::chrono::seconds(1);

// Of so many addresses of a lookup the kernel is asked what it remembers of the path.
inline constexpr std::size_t max_path_questions = 16;

// Where the history is kept: `folder` is XDG_RUNTIME_DIR. nullptr, or what is no absolute path: nowhere.
void keep_history(const char* folder, duration retry);
bool history_is_kept();

enum class recall_from : std::uint8_t {
  memory,  // what is known already; under a lock, or in a signal handler
  all,     // the file, /proc, and where the file knows this network, netlink
};

struct recalled {
  int demoted = 0;
  int used = 0;
  int paths = 0;  // with a round-trip time
};

// Fills in what is remembered of candidates whose source is known. Without a file that knows of this network: one
// stat() a second.
//
// Context:  `all`: in a lookup, without a lock (dlopen); 0.5 ms the first time netlink is needed.
// Spec:     SORT-2, SORT-3, SORT-5
recalled recall(std::span<candidate> list, std::string_view name, recall_from where,
                time_point now);

// Whether the success of a connect() to `a` would make good what had failed.
//
// Context:  signal-safe.
bool success_is_news(const address& a, std::uint64_t name);

// Writes what a race has shown.
//
// Context:  signal-safe; without a lock: it reads and writes a small file.
void remember(std::span<const history_note> notes, time_point now);

// The process goes to another network, or to another root: all that is known is to be found out anew.
void forget_network();

}  // namespace happy
