#include "resolver/resolv_conf.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "resolver/text_scan.h"

namespace happy {
namespace {

// "domain" and the like: at the very start of the line, and a blank behind it.
bool starts_with_keyword(std::string_view line, std::string_view keyword) {
  return line.size() > keyword.size() && line.substr(0, keyword.size()) == keyword &&
         is_blank(line[keyword.size()]);
}

class parser {
 public:
  explicit parser(const resolver_environment& environment) : environment_(environment) {}

  std::variant<resolver_config, decline_reason> parse(std::string_view text) {
    if (environment_.local_domain) add_search_list(*environment_.local_domain);
    while (!text.empty()) read_line(take_line(text));
    complete();
    if (problem_) return *problem_;
    return std::move(config_);
  }

 private:
  void read_line(std::string_view line) {
    if (starts_with_keyword(line, "domain")) {
      set_search_list(line.substr(6), 1);
    } else if (starts_with_keyword(line, "search")) {
      set_search_list(line.substr(6), max_search_domains);
    } else if (starts_with_keyword(line, "nameserver")) {
      add_nameserver(line.substr(10));
    } else if (starts_with_keyword(line, "sortlist")) {
      decline(decline_reason::resolver_option);  // reorders IPv4 answers
    } else if (starts_with_keyword(line, "options")) {
      read_options(line.substr(7));
    }
  }

  // Later lines replace earlier ones; LOCALDOMAIN, even empty, overrides them all.
  void set_search_list(std::string_view words, std::size_t limit) {
    if (environment_.local_domain || words.find_first_not_of(" \t") == std::string_view::npos)
      return;
    config_.search.clear();
    add_search_list(words, limit);
  }

  void add_search_list(std::string_view words, std::size_t limit = max_search_domains) {
    words = words.substr(0, words.find_first_of(std::string_view("\n\0", 2)));
    while (config_.search.size() < limit) {
      const std::string_view word = take_word(words, is_blank);
      if (word.empty()) return;
      config_.search.emplace_back(word);
    }
    const bool cut = limit == max_search_domains && !take_word(words, is_blank).empty();
    if (cut) decline(decline_reason::resolver_option);
  }

  // glibc takes the numbers-and-dots forms too, and passes over what it cannot read.
  void add_nameserver(std::string_view rest) {
    const std::string word(take_word(rest, is_blank));
    in_addr v4;
    in6_addr v6;
    const bool spaces =
        std::any_of(word.begin(), word.end(), is_space);  // which inet_aton() would allow
    if (!spaces && inet_aton(word.c_str(), &v4) != 0) {
      config_.nameservers.push_back(from_in_addr(v4));
    } else if (inet_pton(AF_INET6, word.substr(0, word.find('%')).c_str(), &v6) == 1) {
      const std::size_t scope = word.find('%');
      config_.nameservers.push_back(
          from_in6_addr(v6, scope == std::string::npos ? 0 : scope_id(v6, word.substr(scope + 1))));
    }
  }

  // An interface's name (of a link-local address) or a number; glibc takes 0 for what is neither.
  std::uint32_t scope_id(const in6_addr& where, const std::string& text) const {
    const bool named = IN6_IS_ADDR_LINKLOCAL(&where) || IN6_IS_ADDR_MC_LINKLOCAL(&where);
    if (named && environment_.interface_index != nullptr) {
      if (const unsigned index = environment_.interface_index(text.c_str()); index != 0)
        return index;
    }
    std::uint32_t number = 0;
    const char* end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && last == end ? number : 0;
  }

  void read_options(std::string_view words) {
    for (;;) {
      const std::string_view word = take_word(words, is_blank);
      if (word.empty()) return;
      read_option(word);
    }
  }

  // glibc compares beginnings: "rotatex" is "rotate".
  void read_option(std::string_view word) {
    if (read_number(word, "ndots:", 0, max_ndots, config_.ndots)) return;
    if (read_number(word, "timeout:", 0, max_timeout_s, config_.timeout_s)) return;
    if (read_number(word, "attempts:", 1, max_attempts, config_.attempts)) return;
    if (word.starts_with("rotate")) {
      config_.rotate = true;
    } else if (word.starts_with("edns0")) {
      config_.edns0 = true;
    } else if (word.starts_with("use-vc")) {
      config_.use_vc = true;
    } else if (word.starts_with("trust-ad")) {
      config_.trust_ad = true;
    } else if (word.starts_with("no-aaaa")) {
      config_.no_aaaa = true;
    } else if (word.starts_with("no-tld-query") || word.starts_with("no_tld_query")) {
      config_.no_tld_query = true;
    } else if (word.starts_with("single-request-reopen")) {
      config_.one_by_one = true;  // what it is for happens anyway: each question has its own port
    } else if (!is_harmless(word)) {
      decline(decline_reason::resolver_option);
    }
  }

  // Of older or other libcs; glibc 2.36 passes over them.
  static bool is_harmless(std::string_view word) {
    constexpr std::string_view ignored[] = {"debug",          "insecure1",      "insecure2",
                                            "no-check-names", "ip6-bytestring", "ip6-dotint",
                                            "no-ip6-dotint"};
    return std::find(std::begin(ignored), std::end(ignored), word) != std::end(ignored);
  }

  // True if `word` is this option. Below `least` glibc does what nobody means (no attempt at all).
  bool read_number(std::string_view word, std::string_view name, int least, int most, int& value) {
    if (!word.starts_with(name)) return false;
    const int number = std::atoi(std::string(word.substr(name.size())).c_str());
    if (number < least) decline(decline_reason::resolver_option);
    value = std::min(number, most);
    return true;
  }

  void complete() {
    if (config_.nameservers.empty()) config_.nameservers.push_back(make_ipv4(127, 0, 0, 1));
    const std::size_t dot = environment_.host_name.find('.');
    if (config_.search.empty() && !environment_.local_domain && dot != std::string::npos) {
      config_.search.push_back(environment_.host_name.substr(dot + 1));
    }
    if (environment_.res_options) read_options(*environment_.res_options);
    config_.timeout_s = std::max(config_.timeout_s, 1);
  }

  void decline(decline_reason reason) {
    if (!problem_) problem_ = reason;
  }

  const resolver_environment& environment_;
  resolver_config config_;
  std::optional<decline_reason> problem_;
};

}  // namespace

// (timeout << nameserver) for each, divided by their number from the second on, at least a second.
duration glibc_round(const resolver_config& config) {
  constexpr std::size_t most = 3;  // glibc asks no more
  const std::size_t asked = std::clamp<std::size_t>(config.nameservers.size(), 1, most);
  std::chrono::seconds round{0};
  for (std::size_t i = 0; i < asked; ++i) {
    long seconds = static_cast<long>(config.timeout_s) << i;
    if (i > 0) seconds /= static_cast<long>(asked);
    round += std::chrono::seconds(std::max(seconds, 1L));
  }
  return round;
}

std::variant<resolver_config, decline_reason> parse_resolv_conf(
    std::string_view text, const resolver_environment& environment) {
  return parser(environment).parse(text);
}

}  // namespace happy
