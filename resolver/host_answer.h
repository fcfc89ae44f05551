// What gethostbyname() and its kin answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "resolver/resolution.h"
#include "shim/abi.h"

namespace happy {

struct host_answer {
  int resolver_error = 0;  // h_errno; if it is not 0, there is nothing else
  int left_error = 0;      // what glibc leaves in h_errno although there is an answer
  std::string name{};
  std::vector<std::string> aliases{};
  std::vector<address>
      addresses{};  // of one family, in the nameserver's order: glibc does not sort them
};

// nullopt where glibc would show something else of the answer, or fails over it.
std::optional<host_answer> host_answer_of(const answer& a);

// Whether there is room for any answer, as far as any glibc is concerned: it says ERANGE before it looks.
bool has_room(const happy_host_space& space);

// Puts it into the caller's memory. False, and nothing is changed, where it is short: a glibc might say ERANGE.
bool fill(happy_host_space& to, const host_answer& from);

}  // namespace happy
