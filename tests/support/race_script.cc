#include "tests/support/race_script.h"

#include <deque>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "racer/race.h"

namespace happy::test {
namespace {

struct line {
  long at_ms = 0;
  bool input = false;
  std::string text;
};

std::deque<line> parse(const std::string& script) {
  std::deque<line> lines;
  std::istringstream in(script);
  for (std::string row; std::getline(in, row);) {
    if (row.find_first_not_of(" \t") == std::string::npos) continue;
    std::istringstream words(row);
    line l;
    std::string arrow;
    if (!(words >> l.at_ms >> arrow) || (arrow != "<" && arrow != ">")) {
      throw std::invalid_argument("bad script line: " + row);
    }
    l.input = arrow == "<";
    std::getline(words >> std::ws, l.text);
    lines.push_back(l);
  }
  return lines;
}

std::string format(long ms, const std::string& what) { return std::to_string(ms) + " > " + what; }

class player {
 public:
  explicit player(const race_timing& timing) : timing_(timing), machine_(timing) {}

  void feed(const std::string& text) {
    std::istringstream words(text);
    std::string verb;
    words >> verb;
    if (verb == "endpoints") return feed_endpoints(words);
    std::string where;
    words >> where;
    if (verb == "last") return machine_.expect_last_resort();
    if (verb == "deadline") return machine_.set_deadline(at(std::stol(where)));
    race_event event = event_for(verb, parse_endpoint(where));
    if (long more = 0; words >> more) event.until_success = milliseconds(more);
    machine_.handle(event, now_);
  }

  // Lets time pass until `until`, and everything that the machine does by then.
  void run_until(time_point until) {
    for (int turn = 0; turn < 10'000; ++turn) {
      const race_action action = machine_.poll(now_);
      if (action.what != race_action::kind::wait) {
        done_.push_back(format(ms(), text_of(action)));
        if (action.what == race_action::kind::last_resort) machine_.set_plan(planned_, false, now_);
        continue;
      }
      if (action.until > until) break;
      if (action.until <= now_) throw std::logic_error("the machine waits for the past");
      now_ = action.until;
    }
    if (until > now_) now_ = until;
  }

  std::vector<std::string>& done() { return done_; }
  static time_point at(long ms) { return time_point(milliseconds(ms)); }

 private:
  void feed_endpoints(std::istringstream& words) {
    endpoint_list sorted;
    bool complete = true;
    std::uint32_t group = 0;
    bool in_turn = false;
    for (std::string word; words >> word;) {
      if (word == "...") {
        complete = false;
      } else if (word == "|") {
        ++group;
      } else if (word == "||") {
        ++group;
        in_turn = true;
      } else {
        const std::size_t mark = word.find('~');
        const bool old = mark != std::string::npos && word[mark + 1] == '~';
        const long expected =
            mark == std::string::npos ? 0 : std::stol(word.substr(mark + (old ? 2 : 1)));
        sorted.push_back({.where = parse_endpoint(word.substr(0, mark)),
                          .group = group,
                          .in_turn = in_turn,
                          .expected_handshake = milliseconds(expected),
                          .answered_lately = !old});
      }
    }
    if (!named_known_) named_ = sorted[0].where;
    named_known_ = true;
    planned_ = plan({sorted.begin(), sorted.size()}, named_, timing_.preferred_family_count);
    machine_.set_plan(planned_, complete, now_);
  }

  static race_event event_for(const std::string& verb, const endpoint& where) {
    using kind = race_event::kind;
    if (verb == "connected") return {.what = kind::connected, .where = where};
    if (verb == "succeeded") return {.what = kind::succeeded, .where = where};
    if (verb == "refused") return {.what = kind::failed, .where = where};
    if (verb == "unreachable")
      return {.what = kind::failed, .where = where, .reached_network = false};
    if (verb == "troubled") return {.what = kind::troubled, .where = where};
    throw std::invalid_argument("unknown event: " + verb);
  }

  static std::string text_of(const race_action& action) {
    const std::string where = to_text(action.where.address).chars;
    switch (action.what) {
      case race_action::kind::attempt: return "connect " + where;
      case race_action::kind::won: return "won " + where;
      case race_action::kind::lost: return "lost";
      case race_action::kind::last_resort: return "ask";
      case race_action::kind::wait: break;
    }
    return "?";
  }

  long ms() const {
    return static_cast<long>(
        std::chrono::duration_cast<milliseconds>(now_.time_since_epoch()).count());
  }

  race_timing timing_;
  race machine_;
  endpoint_list planned_;
  endpoint named_;
  bool named_known_ = false;
  time_point now_{};
  std::vector<std::string> done_;
};

}  // namespace

endpoint parse_endpoint(const std::string& text) {
  endpoint e;
  e.port = 80;
  e.address.family = text.find(':') == std::string::npos ? family::ipv4 : family::ipv6;
  if (inet_pton(to_af(e.address.family), text.c_str(), e.address.bytes.data()) != 1) {
    throw std::invalid_argument("not an address: " + text);
  }
  return e;
}

std::string run_race_script(const std::string& script, const race_timing& timing) {
  player p(timing);
  std::vector<std::string> expected;
  long last = 0;
  for (const line& l : parse(script)) {
    // Inputs at a moment come after what the machine does by itself before it.
    if (l.input) {
      p.run_until(player::at(l.at_ms) - duration(1));
      p.run_until(player::at(l.at_ms));
      p.feed(l.text);
    } else {
      expected.push_back(format(l.at_ms, l.text));
    }
    last = l.at_ms;
  }
  p.run_until(player::at(last));
  p.run_until(player::at(last) + std::chrono::minutes(1));
  if (p.done() == expected) return {};
  std::string report = "expected:\n";
  for (const std::string& s : expected) report += "  " + s + "\n";
  report += "done:\n";
  for (const std::string& s : p.done()) report += "  " + s + "\n";
  return report;
}

}  // namespace happy::test
