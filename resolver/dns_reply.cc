#include "resolver/dns_reply.h"

// Version 1.34 discourages what both it and 1.18 have.
#define CARES_NO_DEPRECATED
#include <ares.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "resolver/host_name.h"

namespace happy {
namespace {

// RFC 1035 s4.1
constexpr std::size_t header_size = 12;
constexpr std::size_t flags_at = 2;
constexpr std::size_t question_count_at = 4;
constexpr std::size_t answer_count_at = 6;
constexpr std::size_t additional_count_at = 10;
constexpr unsigned authoritative = 0x04;        // in the first byte of the flags
constexpr unsigned recursion_available = 0x80;  // in the second
constexpr unsigned rcode_mask = 0x0f;
constexpr unsigned rcode_no_error = 0;
constexpr unsigned rcode_server_failure = 2;
constexpr unsigned rcode_name_error = 3;
constexpr unsigned class_in = 1;
constexpr unsigned type_cname = 5;

// No chain in use comes near; glibc keeps 47.
constexpr std::size_t max_aliases = 16;

using bytes = std::span<const std::uint8_t>;

struct record {
  std::string owner;
  unsigned type = 0;
  unsigned record_class = 0;
  std::uint32_t ttl = 0;
  std::size_t data_at = 0;
  std::size_t data_size = 0;
};

// Walks through a packet. After the first thing that does not fit, nothing does.
class reader {
 public:
  reader(bytes packet, std::size_t at) : packet_(packet), at_(at) {}

  bool number16(unsigned& out) {
    if (packet_.size() - at_ < 2) return false;
    out = static_cast<unsigned>(packet_[at_] << 8 | packet_[at_ + 1]);
    at_ += 2;
    return true;
  }

  bool number32(std::uint32_t& out) {
    unsigned high = 0;
    unsigned low = 0;
    if (!number16(high) || !number16(low)) return false;
    out = high << 16 | low;
    return true;
  }

  // c-ares bounds the compression pointers that it follows by the size of the packet.
  bool name(std::string& out) {
    if (at_ >= packet_.size()) return false;
    char* text = nullptr;
    long size = 0;
    if (ares_expand_name(packet_.data() + at_, packet_.data(), static_cast<int>(packet_.size()),
                         &text, &size) != ARES_SUCCESS) {
      return false;
    }
    out = text;
    ares_free_string(text);
    if (size <= 0 || static_cast<std::size_t>(size) > packet_.size() - at_) return false;
    at_ += static_cast<std::size_t>(size);
    return true;
  }

  bool next(record& r) {
    unsigned size = 0;
    if (!name(r.owner) || !number16(r.type) || !number16(r.record_class) || !number32(r.ttl) ||
        !number16(size) || packet_.size() - at_ < size) {
      return false;
    }
    r.data_at = at_;
    r.data_size = size;
    at_ += size;
    return true;
  }

 private:
  bytes packet_;
  std::size_t at_;
};

address address_in(record_type type, bytes data) {
  address a;
  a.family = family_of(type);
  std::copy(data.begin(), data.end(), a.bytes.begin());
  return a;
}

// SERVFAIL, NOTIMP and REFUSED make glibc try again elsewhere; what the others mean is its own business.
answer_kind kind_of(unsigned rcode) {
  switch (rcode) {
    case rcode_server_failure:
    case 4:
    case 5: return answer_kind::server_failure;
    case rcode_name_error: return answer_kind::name_error;
    default: return answer_kind::odd;
  }
}

bool is_zero(bytes packet, std::size_t at) { return packet[at] == 0 && packet[at + 1] == 0; }

// Nothing is there, and the nameserver neither knows nor asks who would: for glibc it has failed.
bool is_referral(bytes packet) {
  return (packet[flags_at] & authoritative) == 0 &&
         (packet[flags_at + 1] & recursion_available) == 0 && is_zero(packet, answer_count_at) &&
         is_zero(packet, additional_count_at);
}

// What the code of a header says; what only the records can tell is left to them.
void read_code(bytes packet, answer& a) {
  a.kind = answer_kind::odd;
  if (packet.size() < header_size) return;
  const unsigned rcode = packet[flags_at + 1] & rcode_mask;
  if (rcode == rcode_no_error && !is_referral(packet)) {
    a.kind = answer_kind::positive;
    return;
  }
  a.kind = rcode == rcode_no_error ? answer_kind::server_failure : kind_of(rcode);
  if (a.kind == answer_kind::server_failure)
    a.refused = rcode == rcode_server_failure ? refusal::servfail : refusal::other_code;
}

class reply_reader {
 public:
  reply_reader(record_type type, bytes packet) : packet_(packet), reader_(packet, header_size) {
    answer_.type = type;
  }

  answer read() {
    read_code(packet_, answer_);
    if (answer_.kind != answer_kind::positive) return answer_;
    const bool sound = read_question() && read_records();
    std::move(unusable_.begin(), unusable_.end(), std::back_inserter(answer_.services));
    if (!sound) {
      answer_.addresses.clear();
      answer_.services.clear();
      answer_.kind = answer_kind::odd;
      return answer_;
    }
    answer_.kind = judge();
    return answer_;
  }

 private:
  bool read_question() {
    reader counts(packet_, question_count_at);
    unsigned questions = 0;
    unsigned ignored = 0;
    if (!counts.number16(questions) || !counts.number16(records_) || questions != 1) return false;
    if (!reader_.name(expected_) || !reader_.number16(ignored) || !reader_.number16(ignored))
      return false;
    answer_.canonical_name = expected_;
    return true;
  }

  bool read_records() {
    bool first = true;
    for (unsigned i = 0; i < records_; ++i) {
      record r;
      if (!reader_.next(r)) return false;
      const bool alias = r.type == type_cname;
      const bool wanted = r.type == static_cast<unsigned>(answer_.type);
      if (r.record_class != class_in || (!alias && !wanted)) continue;
      // RFC 2181 s8: with the top bit set it counts as zero.
      const std::chrono::seconds ttl(r.ttl > 0x7fffffff ? 0 : r.ttl);
      answer_.ttl = first ? ttl : std::min(answer_.ttl, ttl);
      first = false;
      if (alias ? !follow_alias(r) : !add(r)) return false;
    }
    return true;
  }

  // As in glibc the owner of a CNAME record is neither compared nor shown, and a target that is no host name is
  // followed but not shown.
  bool follow_alias(const record& r) {
    reader target(packet_, r.data_at);
    const std::string alias = std::move(expected_);
    if (!target.name(expected_)) return false;
    const bool plain = is_host_name(alias) && is_host_name(expected_);
    if (!plain || !answer_.addresses.empty() || answer_.aliases.size() == max_aliases)
      answer_.odd_chain = true;
    else
      answer_.aliases.push_back(alias);
    if (answer_.addresses.empty() && is_host_name(expected_)) answer_.canonical_name = expected_;
    return true;
  }

  bool add(const record& r) {
    if (!equal_ignoring_case(r.owner, expected_)) return true;
    return is_address(answer_.type) ? add_address(r) : add_service(r);
  }

  // One SRV record that is malformed spoils no other; with SVCB it does (RFC 9460 s2.2).
  bool add_service(const record& r) {
    const bool srv = answer_.type == record_type::srv;
    std::optional<service_record> parsed =
        srv ? parse_srv(packet_, r.data_at, r.data_size)
            : parse_svcb(packet_.subspan(r.data_at, r.data_size));
    if (!parsed && !srv) return false;
    if (!parsed) parsed = service_record{.target = "(malformed)", .usable = false};
    if (!parsed->usable) {
      keep_best(unusable_, std::move(*parsed));
    } else if (srv) {
      answer_.services.push_back(std::move(*parsed));
      limit_srv(answer_.services, max_srv_records);
    } else {
      keep_best(answer_.services, std::move(*parsed));
    }
    return true;
  }

  static void keep_best(std::vector<service_record>& list, service_record r) {
    if (list.size() == max_service_records) {
      const auto last = std::max_element(list.begin(), list.end(), by_priority);
      if (!by_priority(r, *last)) return;
      list.erase(last);
    }
    list.push_back(std::move(r));
  }

  static bool by_priority(const service_record& a, const service_record& b) {
    return a.priority < b.priority;
  }

  bool add_address(const record& r) {
    const std::size_t size = answer_.type == record_type::a ? 4 : 16;
    if (r.data_size != size) {
      answer_.odd_chain = true;
      return true;
    }
    const address where = address_in(answer_.type, packet_.subspan(r.data_at, size));
    const auto& known = answer_.addresses;
    const bool repeated = std::find(known.begin(), known.end(), where) != known.end();
    if (repeated || !answer_.addresses.push_back(where)) answer_.irregular = true;
    return true;
  }

  answer_kind judge() const {
    if (!answer_.addresses.empty() || !answer_.services.empty()) return answer_kind::positive;
    return records_ == 0 ? answer_kind::no_data : answer_kind::hollow;
  }

  bytes packet_;
  reader reader_;
  answer answer_;
  std::vector<service_record> unusable_;
  std::string expected_;  // owner of the records that count
  unsigned records_ = 0;
};

}  // namespace

answer read_reply(record_type type, std::span<const std::uint8_t> packet) {
  return reply_reader(type, packet).read();
}

answer keep_reply(record_type type, std::span<const std::uint8_t> packet) {
  answer a;
  a.type = type;
  read_code(packet, a);
  if (a.kind == answer_kind::positive && is_zero(packet, answer_count_at))
    a.kind = answer_kind::no_data;
  a.packet.assign(packet.begin(), packet.end());
  return a;
}

}  // namespace happy
