// The resolution as a state machine: which queries to send, when to stop waiting, what came in.
// Takes no clock and no socket; see lookup.h for the half that does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "resolver/answer.h"
#include "shim/base/time.h"

namespace happy {

// Why a resolution stopped waiting.
enum class move_on : std::uint8_t {
  all_answered,        // every query whose answer could change the outcome has it
  preferred_answered,  // ANSWER-2: an address, and the preferred family and the service have spoken
  resolution_delay,    // ANSWER-3: an address, and the Resolution Delay has passed since
  deadline,            // glibc would have given up by now
};

const char* to_text(move_on reason);

// Once the preferred family has given addresses, the other family's answer is waited for a moment more.
// Programs look at the list that they get (some choose a family by it), and which of two answers that
// come together is read first must not decide. 99 of 100 pairs of answers arrive within 21 ms of each
// other (browser telemetry, 2026).
inline constexpr duration default_companion_delay = milliseconds(25);

// It moves with the Resolution Delay, of whose default it is the half.
constexpr duration companion_delay_for(duration resolution_delay) { return resolution_delay / 2; }

// AliasMode records followed one after the other. Chains of more than two are not seen in use.
inline constexpr std::size_t max_alias_links = 4;

// Service records whose endpoints are raced, those of the best priorities; their targets are asked for.
inline constexpr std::size_t max_services = 4;

// Targets of SRV records that are asked for: those drawn first, each priority having one if it can. At ten seconds
// for a silent priority, nobody waits for the ninth.
inline constexpr std::size_t max_srv_targets = 8;

// An SRV query that keeps silent that long (there are forwarders that drop what they do not know) is gone on
// without; 99 of 100 answers come within a tenth of that.
inline constexpr duration srv_answer_patience = std::chrono::seconds(1);

// So long the addresses of one priority's targets are waited for before the next priority is asked for as well: by
// then each query has been repeated (resend_after), and eight silent priorities leave libc's ten seconds a remainder.
inline constexpr duration srv_targets_patience = std::chrono::seconds(1);

// The service, AAAA and A of the name, of every alias, and the addresses of every target.
inline constexpr std::size_t max_queries = 3 * (1 + max_alias_links) + 2 * max_services;
static_assert(max_queries >= 1 + 2 * (max_srv_targets + 1));

// SVCB-2: hints hold until the name's own records say something, be it that there are none. An error says
// nothing; nullptr: no answer yet.
bool replaces_hints(const answer* a);

// With SRV records, the targets stand for the name: the addresses of those of the first priority are asked
// for when the SRV answer is there, those of the next when all of these have been answered or the patience with
// them is over, and the name's own when no target is left (XMPP-6). Late answers count as if they had been in time;
// silent targets are given up when the whole resolution is.
//
// Spec:     hev3 Sending DNS Queries, hev3 Handling DNS Answers Asynchronously, hev3 Resolving SVCB/HTTPS,
//           XEP-0495 s4.1, s4.2: XMPP-3, XMPP-4
class resolution {
 public:
  struct settings {
    bool ipv4 = true;  // which families the program wants; at least one
    bool ipv6 = true;
    // QUERY-2: this family has no connectivity, so it is asked for only if the other has no address.
    std::optional<family> in_reserve{};
    // IPv4 addresses count only while there is no IPv6 one (AI_V4MAPPED without AI_ALL).
    bool ipv4_is_substitute = false;
    family preferred = family::ipv6;    // ANSWER-7
    duration delay = milliseconds(50);  // Resolution Delay
    duration companion_delay = default_companion_delay;
    bool complete = false;        // wait for every answer, as glibc does
    time_point deadline = never;  // of the whole resolution
    // What the name's own addresses get at least, where the service's silence has used up the time before.
    duration last_chance{0};
    std::string name{};
    // Where the name's service records are; empty: they are not asked for.
    std::string service_name{};
    record_type service_type = record_type::https;
    std::uint32_t seed = 0;  // for the choice among equals
    // Whether the DNS is who knows the addresses of an SRV target; where somebody else does (/etc/hosts), the target is
    // passed over. Empty: of each.
    std::function<bool(const std::string& target)> in_dns{};
    // Targets known beforehand, from an SRV answer that the program itself has got: they join the race.
    std::vector<service_record> companions{};
  };

  struct action {
    enum class kind : std::uint8_t {
      query,     // send query number `query`
      wait,      // nothing to do before `until`, unless an answer comes
      finished,  // stop waiting, because of `reason`; late answers may still be handled
    };
    kind what = kind::wait;
    std::size_t query = 0;
    time_point until = never;
    move_on reason = move_on::all_answered;
  };

  // A target that a service record named.
  struct service {
    service_record record;  // `target` is a name to ask for, never empty
    std::uint16_t rank = 0;
    bool srv = false;  // `rank` is the place that RFC 2782 gives it
  };

  explicit resolution(const settings& s);

  // What to do next. Call until it says wait or finished. After an answer there may be more to ask, even
  // when the resolution has finished.
  action poll(time_point now);

  // When there will be more to ask although no answer comes; never: nothing will.
  time_point asks_more_at() const;

  // From now on every answer of the name's own addresses is waited for, as glibc does.
  void want_all();

  // The answer to query number `number`. Each is answered once; a second answer is ignored.
  void handle(std::size_t number, const answer& a, time_point now);

  std::size_t query_count() const { return queries_.size(); }
  const std::string& name_of(std::size_t number) const { return queries_[number].name; }
  record_type type_of(std::size_t number) const { return queries_[number].type; }

  // The number of the query, if there is one.
  std::optional<std::size_t> find(const std::string& name, record_type type) const;

  // The answer, or nullptr while there is none (or it was not asked for). Of the lookup's own name:
  const answer* answered(record_type type) const { return answered(settings_.name, type); }
  const answer* answered(const std::string& name, record_type type) const;

  // SVCB-1: all that service records say; empty while they are not there, or if none can be used. In
  // the order of their priority.
  const std::vector<service>& services() const { return services_; }
  bool service_settled() const { return service_settled_; }
  // The services are the targets of SRV records, and the lookup's addresses are theirs.
  bool by_srv() const { return settings_.service_type == record_type::srv && !services_.empty(); }
  // RFC 2782: the only target is ".": the service is decidedly not there.
  bool not_available() const { return not_available_; }

  bool asked(family f) const { return f == family::ipv6 ? settings_.ipv6 : settings_.ipv4; }
  // Its addresses are the program's to have, as far as the answers say.
  bool counts(family f) const;
  const std::string& name() const { return settings_.name; }
  // An address of the lookup's own name is there (or of a target of SRV), or a hint at one.
  bool any_positive() const;
  // What the lookup's own name has in either family is known.
  bool own_addresses_answered() const;
  // Nothing more is expected.
  bool all_answered() const;

 private:
  struct question {
    std::string name;
    record_type type;
    bool sent = false;
    bool answered = false;
    time_point since = never;  // answered then
    answer what{};
  };

  void ask(const std::string& name, record_type type);
  void ask_addresses(const std::string& name);
  void take_service(std::size_t number, time_point now);
  void take_srv(const std::vector<service_record>& records);
  void add_target(const service_record& r);
  bool may_be_asked(const service_record& r) const;
  void ask_next_targets(time_point now);
  void ask_name_after_targets(time_point now);
  bool asks_srv() const {
    return settings_.service_type == record_type::srv && !settings_.service_name.empty();
  }
  bool targets_settled() const;
  bool is_passed_over(std::size_t target) const;
  const std::string& lead() const;
  bool is_in_lead(const std::string& name) const;
  time_point targets_wait_until() const;
  void follow_alias(const service_record& alias);
  void use(const std::vector<service_record>& records, const std::string& owner);
  void note_hints(time_point now);
  void release_reserve();
  bool is_own(const std::string& name) const;
  bool is_settled(const question& q) const;
  bool preferred_answered() const;
  bool finished_by(move_on& reason, time_point now) const;
  time_point addresses_wait_until() const;

  settings settings_;
  std::vector<question> queries_;
  std::vector<service> services_;
  std::size_t alias_links_ = 0;
  bool service_settled_ = true;
  bool not_available_ = false;
  // Of services_, from SRV: those of the priority that was asked for last, ...
  std::size_t targets_asked_from_ = 0;
  std::size_t targets_asked_ = 0;         // and those that have not been
  std::size_t targets_queries_from_ = 0;  // their queries
  bool name_asked_ = false;               // after all of them
  time_point srv_until_ = never;          // the SRV answer, or their answers, are waited for
  time_point first_positive_ = never;
  time_point preferred_positive_ = never;
};

}  // namespace happy
