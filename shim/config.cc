#include "shim/config.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string_view>

#include "shim/base/nat64_prefix.h"

namespace happy {
namespace {

// hev3 Summary of Configurable Values, then the library's own. The README shows them in this order.
constexpr knob all_knobs[] = {
    {"HAPPY_DISABLE", knob_kind::number, "", 0, 1, 0, &happy_settings::disable, "",
     "1: libhappy does nothing at all"},
    {"HAPPY_TRACE", knob_kind::path, "", 0, 0, 0, nullptr, "",
     "JSON lines of what was done and why; scripts/happy-timeline FILE shows them as text"},
    {"HAPPY_PARTIAL", knob_kind::number, "", 0, 1, 1, &happy_settings::partial, "",
     "0: a lookup waits for both families, as libc's does, also where connecting could begin "
     "sooner"},
    {"HAPPY_RESOLUTION_DELAY_MS", knob_kind::number, "ms", 0, 10'000, 50,
     &happy_settings::resolution_delay_ms, "",
     "how long a lookup that has an address waits for the preferred family"},
    {"HAPPY_CONNECTION_ATTEMPT_DELAY_MS", knob_kind::number, "ms", 10, 10'000, 250,
     &happy_settings::connection_attempt_delay_ms,
     "the specification forbids less than 10 ms between attempts",
     "time between one connection attempt and the next"},
    {"HAPPY_MINIMUM_CONNECTION_ATTEMPT_DELAY_MS", knob_kind::number, "ms", 10, 10'000, 100,
     &happy_settings::minimum_connection_attempt_delay_ms,
     "the specification forbids less than 10 ms between attempts", "lower bound of that time"},
    {"HAPPY_MAXIMUM_CONNECTION_ATTEMPT_DELAY_MS", knob_kind::number, "ms", 10, 10'000, 2000,
     &happy_settings::maximum_connection_attempt_delay_ms,
     "the specification forbids less than 10 ms between attempts", "upper bound of that time"},
    {"HAPPY_PREFERRED_ADDRESS_FAMILY_COUNT", knob_kind::number, "addresses", 1, 48, 1,
     &happy_settings::preferred_address_family_count, "",
     "addresses of the first family tried before the first of the other"},
    {"HAPPY_PREF64", knob_kind::prefixes, "", 0, 0, 0, nullptr, "",
     "on IPv6-only networks: the NAT64 prefixes to use instead of what routers and DNS say; none: "
     "no NAT64"},
    {"HAPPY_LAST_RESORT_SYNTHESIS_DELAY_MS", knob_kind::number, "ms", 0, 60'000, 2000,
     &happy_settings::last_resort_synthesis_delay_ms, "",
     "on IPv6-only networks, where A records were not asked for: how long after the last attempt "
     "they are"},
    {"HAPPY_UDP", knob_kind::number, "", 0, 1, 0, &happy_settings::udp, "",
     "1: on IPv6-only networks UDP goes by way of the NAT64, too"},
    {"HAPPY_BRIDGE", knob_kind::choice, "", 0, 2, 0, &happy_settings::bridge, "",
     "where a program that can take only IPv4 is given a made-up address for a name that has only "
     "IPv6",
     "ipv6-only always never"},
    {"HAPPY_BRIDGE_POOL", knob_kind::number, "", 1, 254, 251, &happy_settings::bridge_pool, "",
     "first octet of those addresses; none of them ever leaves the host"},
    {"HAPPY_PROFILE", knob_kind::choice, "", 0, 2, 0, &happy_settings::profile, "",
     "fast: first attempts 50, 100, 200 ms apart, up to the attempt delay; v2: lookups as in RFC "
     "8305",
     "standard fast v2"},
    {"HAPPY_KNOWN_LOCAL_ULA", knob_kind::number, "", 0, 1, 0, &happy_settings::known_local_ula, "",
     "1: unique local addresses in this host's own /48 go before global ones"},
    {"HAPPY_SERVICE_RECORDS", knob_kind::number, "", 0, 1, 1, &happy_settings::service_records, "",
     "0: HTTPS and SVCB records are never asked for"},
    {"HAPPY_SERVICES", knob_kind::services, "", 0, 0, 0, nullptr, "",
     "services beside https at port 443 whose records steer connects to their port"},
    {"HAPPY_KEEP_HINTS", knob_kind::number, "", 0, 1, 0, &happy_settings::keep_hints, "",
     "1: address hints that a target's own records do not confirm are tried last, not dropped"},
    {"HAPPY_HISTORY", knob_kind::choice, "", 0, 1, 1, &happy_settings::history, "",
     "off: nothing is kept of what races have shown, in a file in XDG_RUNTIME_DIR, and nothing is "
     "put last for it",
     "off on"},
    {"HAPPY_HISTORY_RETRY_S", knob_kind::number, "s", 1, 3600, 60, &happy_settings::history_retry_s,
     "",
     "how long what failed on a network is put last, at first; doubled each time, up to ten times "
     "that"},
    {"HAPPY_SRV", knob_kind::srv, "", 0, 0, 0, nullptr, "",
     "services found by SRV records: NAME where lookups name it, NAME=PORT where they name the "
     "port, "
     "too; none: for no service"},
    {"HAPPY_SRV_PATIENCE_MS", knob_kind::number, "ms", 0, 600'000, 10'000,
     &happy_settings::srv_patience_ms, "",
     "after its last attempt, how long a silent priority group of SRV holds back the next one"},
    {"HAPPY_FORCE", knob_kind::words, "", 0, 0, 0, nullptr, "",
     "for testing: swap hands every TCP connect over to a hidden attempt, fail:NAME lets NAME "
     "fail"},
    {"HAPPY_FAIL_CALL", knob_kind::number, "", 0, 1'000'000, 0, &happy_settings::fail_call, "",
     "for testing: that call of the engine to the system fails, counted from 1"},
};

constexpr force_word all_force_words[] = {
    {"swap", HAPPY_FORCE_SWAP},
    {"fail:thread", HAPPY_FORCE_FAIL_THREAD},
    {"fail:proc", HAPPY_FORCE_FAIL_PROC},
    {"fail:epoll", HAPPY_FORCE_FAIL_EPOLL},
    {"fail:dup3", HAPPY_FORCE_FAIL_DUP3},
    {"fail:engine", HAPPY_FORCE_FAIL_ENGINE},
    {"fail:socket", HAPPY_FORCE_FAIL_SOCKET},
};

// The value behind "NAME=", or nullptr.
const char* value_of(const char* variable, const char* name) {
  const std::size_t length = std::strlen(name);
  if (std::strncmp(variable, name, length) != 0 || variable[length] != '=') return nullptr;
  return variable + length + 1;
}

// A decimal number without sign, or -1.
std::int32_t parse_number(const char* text) {
  constexpr int most_digits = 9;  // all that surely fits
  std::int32_t value = 0;
  int digits = 0;
  for (; *text >= '0' && *text <= '9' && digits < most_digits; ++digits) {
    value = value * 10 + (*text++ - '0');
  }
  return *text == 0 && digits > 0 ? value : -1;
}

// The bits of a list by commas, or 0 if a word is unknown.
std::uint32_t parse_words(const char* text) {
  std::uint32_t bits = 0;
  for (;;) {
    std::size_t length = 0;
    while (text[length] != 0 && text[length] != ',') ++length;
    std::uint32_t bit = 0;
    for (const force_word& w : all_force_words) {
      if (std::strlen(w.name) == length && std::strncmp(w.name, text, length) == 0) bit = w.bit;
    }
    if (bit == 0) return 0;
    bits |= bit;
    if (text[length] == 0) return bits;
    text += length + 1;
  }
}

bool are_prefixes(const char* text) {
  if (std::strcmp(text, "none") == 0) return true;
  prefix_list ignored;
  std::string_view at;
  return read_prefixes(text, ignored, at) == nullptr;
}

// RFC 3986 s3.1, as a label of a name.
bool is_scheme_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

// Reads a scheme; where it ends, or nullptr: there is none, or no room for it.
template <std::size_t size>
const char* parse_scheme(const char* text, char (&out)[size]) {
  std::size_t length = 0;
  for (; is_scheme_char(*text); ++text) {
    if (length + 1 == size) return nullptr;
    out[length++] = *text;
  }
  out[length] = 0;
  return length > 0 ? text : nullptr;
}

// Reads a port, of at most five digits; where it ends, or nullptr.
const char* parse_port(const char* text, std::uint16_t& out) {
  std::int32_t port = 0;
  const char* const end = text + 5;
  for (; *text >= '0' && *text <= '9'; ++text) {
    if (text == end) return nullptr;
    port = port * 10 + (*text - '0');
  }
  out = static_cast<std::uint16_t>(port);
  return port > 0 && port <= 65535 ? text : nullptr;
}

// Reads PORT=SCHEME; where it ends, or nullptr.
const char* parse_service(const char* text, happy_service& out) {
  text = parse_port(text, out.port);
  return text != nullptr && *text == '=' ? parse_scheme(text + 1, out.scheme) : nullptr;
}

// Reads NAME or NAME=PORT; where it ends, or nullptr.
const char* parse_srv_service(const char* text, happy_srv_service& out) {
  text = parse_scheme(text, out.name);
  return text == nullptr || *text != '=' ? text : parse_port(text + 1, out.port);
}

// False, and `out` as it was, if the text is no list of what `parse` reads.
template <typename Entry, std::size_t most>
bool parse_list(const char* text, const char* (*parse)(const char*, Entry&), Entry (&out)[most]) {
  Entry found[most]{};
  for (Entry& entry : found) {
    text = parse(text, entry);
    if (text == nullptr) return false;
    if (*text == 0) {
      std::memcpy(out, found, sizeof found);
      return true;
    }
    if (*text++ != ',') return false;
  }
  return false;  // more than there is room for
}

bool parse_services(const char* text, happy_settings& settings) {
  return parse_list(text, parse_service, settings.services);
}

bool parse_srv_services(const char* text, happy_settings& settings) {
  if (std::strcmp(text, "none") != 0) return parse_list(text, parse_srv_service, settings.srv);
  std::memset(settings.srv, 0, sizeof settings.srv);
  return true;
}

void refuse(environment& e, const char* variable) {
  if (e.refused++ != 0) return;
  const std::size_t room = sizeof e.first_refused - 1;
  std::memcpy(e.first_refused, variable, std::min(std::strlen(variable), room));
}

void read_number(environment& e, const knob& k, const char* variable, const char* text) {
  const std::int32_t value = parse_number(text);
  if (value < k.minimum || value > k.maximum) return refuse(e, variable);
  e.settings.*k.field = value;
}

// The place of `text` among words separated by single spaces, or -1.
std::int32_t place_of(const char* text, const char* words) {
  const std::size_t wanted = std::strlen(text);
  for (std::int32_t place = 0; *words != 0; ++place) {
    std::size_t length = 0;
    while (words[length] != 0 && words[length] != ' ') ++length;
    if (length == wanted && std::strncmp(words, text, length) == 0) return place;
    words += length + (words[length] != 0 ? 1 : 0);
  }
  return -1;
}

void read_choice(environment& e, const knob& k, const char* variable, const char* text) {
  const std::int32_t place = place_of(text, k.choices);
  if (place < 0) return refuse(e, variable);
  e.settings.*k.field = place;
}

void read_variable(environment& e, const char* variable) {
  for (const knob& k : all_knobs) {
    const char* text = value_of(variable, k.name);
    if (text == nullptr || *text == 0) continue;
    if (k.kind == knob_kind::number) {
      read_number(e, k, variable, text);
    } else if (k.kind == knob_kind::choice) {
      read_choice(e, k, variable, text);
    } else if (k.kind == knob_kind::path) {
      e.trace_target = text;
      e.settings.trace = 1;
    } else if (k.kind == knob_kind::prefixes) {
      if (are_prefixes(text)) {
        e.pref64 = text;
      } else {
        refuse(e, variable);
      }
    } else if (k.kind == knob_kind::services) {
      if (!parse_services(text, e.settings)) refuse(e, variable);
    } else if (k.kind == knob_kind::srv) {
      if (!parse_srv_services(text, e.settings)) refuse(e, variable);
    } else {
      e.settings.force = parse_words(text);
      if (e.settings.force == 0) refuse(e, variable);
    }
  }
}

bool rising(const happy_settings& settings) {
  constexpr auto& fields = rising_fields;
  return std::is_sorted(std::begin(fields), std::end(fields),
                        [&](auto one, auto other) { return settings.*one < settings.*other; });
}

// Values that are good by themselves may contradict each other; then none of them is taken.
void check_order(environment& e) {
  if (rising(e.settings)) return;
  for (const auto field : rising_fields) e.settings.*field = knob_of(field).fallback;
  refuse(e, "connection attempt delays that are not minimum <= delay <= maximum");
}

}  // namespace

std::span<const knob> knobs() { return all_knobs; }

const knob& knob_of(std::int32_t happy_settings::*field) {
  return *std::find_if(std::begin(all_knobs), std::end(all_knobs),
                       [field](const knob& k) { return k.field == field; });
}

std::span<const force_word> force_words() { return all_force_words; }

happy_settings default_settings() {
  happy_settings settings{};
  for (const knob& k : all_knobs) {
    if (k.field != nullptr) settings.*k.field = k.fallback;
  }
  settings.srv[0] = {"xmpp-client", 0};
  settings.srv[1] = {"xmpp-server", 0};
  return settings;
}

environment read_environment(const char* const* variables) {
  environment e;
  e.settings = default_settings();
  if (variables == nullptr) return e;
  for (; *variables != nullptr; ++variables) {
    // Nothing that a whole environment of other people's variables would make dear.
    const char* v = *variables;
    if (v[0] == 'H' && v[1] == 'A' && std::strncmp(v, "HAPPY_", 6) == 0) read_variable(e, v);
  }
  check_order(e);
  e.disabled = e.settings.disable != 0;
  return e;
}

}  // namespace happy
