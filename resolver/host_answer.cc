#include "resolver/host_answer.h"

#include <cstring>
#include <memory>

namespace happy {
namespace {

// glibc 2.36, which wants the most: what it keeps free for aliases and one address, to align, and for the longest
// name, which it expands in place.
constexpr std::size_t fixed_need = 48 * sizeof(char*) + 16 + alignof(char*) + HAPPY_MAX_NAME;
// It aligns each address to that, and other records of the answer take a pointer each.
constexpr std::size_t address_alignment = 16;
constexpr std::size_t other_records = 8;

std::size_t address_size(const host_answer& a) {
  return a.addresses[0].family == family::ipv4 ? sizeof(in_addr) : sizeof(in6_addr);
}

// At least what any glibc needs, and so what is needed here.
std::size_t need_of(const host_answer& a) {
  const std::size_t records = a.addresses.size() + a.aliases.size() + other_records;
  std::size_t need = fixed_need + (records + 1) * sizeof(char*);
  need += a.addresses.size() * (address_size(a) + address_alignment);
  for (const std::string& alias : a.aliases) need += 2 * (alias.size() + 1);
  return need + 2 * (a.name.size() + 1);
}

// Takes pieces from the front of a buffer that is large enough.
class carver {
 public:
  explicit carver(char* at) : at_(at) {}

  char** pointers(std::size_t count) {
    void* place = at_;
    std::size_t room = count * sizeof(char*) + alignof(char*);
    auto* list =
        static_cast<char**>(std::align(alignof(char*), count * sizeof(char*), place, room));
    at_ = reinterpret_cast<char*>(list + count);
    return list;
  }

  char* copy(const void* data, std::size_t size) {
    char* place = at_;
    std::memcpy(place, data, size);
    at_ += size;
    return place;
  }

  char* copy(const std::string& text) { return copy(text.c_str(), text.size() + 1); }

 private:
  char* at_;
};

}  // namespace

std::optional<host_answer> host_answer_of(const answer& a) {
  if (a.kind != answer_kind::positive || a.irregular || a.odd_chain) return std::nullopt;
  return host_answer{.name = a.canonical_name,
                     .aliases = a.aliases,
                     .addresses = {a.addresses.begin(), a.addresses.end()}};
}

bool has_room(const happy_host_space& space) { return space.size >= fixed_need; }

bool fill(happy_host_space& to, const host_answer& from) {
  if (to.size < need_of(from)) return false;
  carver rest(to.buffer);
  char** aliases = rest.pointers(from.aliases.size() + 1);
  char** addresses = rest.pointers(from.addresses.size() + 1);
  const std::size_t size = address_size(from);
  *to.host = {.h_name = nullptr,
              .h_aliases = aliases,
              .h_addrtype = to_af(from.addresses[0].family),
              .h_length = static_cast<int>(size),
              .h_addr_list = addresses};
  for (const address& a : from.addresses) *addresses++ = rest.copy(a.bytes.data(), size);
  for (const std::string& alias : from.aliases) *aliases++ = rest.copy(alias);
  *addresses = *aliases = nullptr;
  to.host->h_name = rest.copy(from.name);
  return true;
}

}  // namespace happy
