// list-knobs shell | markdown: the table of shim/config.cc, as happy-run sources it and as the README
// shows it. list-knobs judge NAME=VALUE...: "taken" or "refused" for each, alone, by the library. Built and run by make.

#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "shim/config.h"

namespace {

using happy::knob;
using happy::knob_kind;

std::string force_list(const char* before, const char* after, const char* between) {
  std::string list;
  for (const happy::force_word& w : happy::force_words()) {
    list += (list.empty() ? "" : between) + (before + std::string(w.name)) + after;
  }
  return list;
}

// The words of a choice, or only the one at `place`.
std::string choices(const knob& k, const char* tick, int place = -1) {
  std::istringstream words(k.choices);
  std::string list;
  int at = 0;
  for (std::string word; words >> word; ++at) {
    if (place >= 0 && at != place) continue;
    list += (list.empty() ? "" : ", ") + (tick + word) + tick;
  }
  return list;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string with_unit(std::string text, const knob& k) {
  if (k.unit[0] != 0 && std::strcmp(k.unit, "addresses") != 0) text = text + " " + k.unit;
  return text;
}

std::string fallback(const knob& k) {
  if (k.kind == knob_kind::path) return "off";
  if (k.kind == knob_kind::words || k.kind == knob_kind::services) return "none";
  if (k.kind == knob_kind::srv) return "xmpp-client,xmpp-server";
  if (k.kind == knob_kind::prefixes) return "found out";
  if (k.kind == knob_kind::choice) return choices(k, "", k.fallback);
  return with_unit(std::to_string(k.fallback), k);
}

std::string range(const knob& k, bool markdown) {
  const char* tick = markdown ? "`" : "";
  if (k.kind == knob_kind::path)
    return std::string("a file, or ") + tick + "-" + tick + " for standard error";
  if (k.kind == knob_kind::prefixes)
    return std::string("list of prefixes, or ") + tick + "none" + tick;
  if (k.kind == knob_kind::choice) return choices(k, tick);
  if (k.kind == knob_kind::words) return "list of " + force_list(tick, tick, ", ");
  if (k.kind == knob_kind::services)
    return std::string("list of PORT=SCHEME, like ") + tick + "8443=https,853=dot" + tick;
  if (k.kind == knob_kind::srv)
    return std::string("list of NAME or NAME=PORT, like ") + tick + "xmpp-client,imap=143" + tick +
           ", or " + tick + "none" + tick;
  if (k.minimum == 0 && k.maximum == 1) return "0, 1";
  return with_unit(std::to_string(k.minimum) + " to " + std::to_string(k.maximum), k);
}

// Class, order of bytes and machine of the libraries, which are those of this program: the same compiler
// made them. ELF has them at the same places in both classes.
bool print_machine() {
  unsigned char header[20];
  std::FILE* self = std::fopen("/proc/self/exe", "rb");
  const bool complete =
      self != nullptr && std::fread(header, 1, sizeof header, self) == sizeof header;
  if (self != nullptr) std::fclose(self);
  if (!complete) return false;
  const bool little = header[5] == 1;
  const int machine = little ? header[18] + header[19] * 256 : header[18] * 256 + header[19];
  std::printf("happy_run_endian=%d\nhappy_run_machine='%d %d %d'\n", header[5], header[4],
              header[5], machine);
  return true;
}

// happy_run_knob NAME KIND DEFAULT RANGE MINIMUM MAXIMUM WHY-NOT-LESS HELP; for words and choice, they are MINIMUM.
void print_shell(const knob& k) {
  const bool number = k.kind == knob_kind::number;
  const char* kind = number                          ? "number"
                     : k.kind == knob_kind::path     ? "path"
                     : k.kind == knob_kind::prefixes ? "prefixes"
                     : k.kind == knob_kind::choice   ? "choice"
                     : k.kind == knob_kind::services ? "services"
                     : k.kind == knob_kind::srv      ? "srv"
                                                     : "words";
  std::string low = number ? std::to_string(k.minimum) : k.choices;
  if (k.kind == knob_kind::words) low = force_list("", "", " ");
  std::printf("happy_run_knob %s %s %s %s %s %s %s %s\n", k.name, kind, quoted(fallback(k)).c_str(),
              quoted(range(k, false)).c_str(), quoted(low).c_str(),
              quoted(number ? std::to_string(k.maximum) : "").c_str(), quoted(k.floor).c_str(),
              quoted(k.help).c_str());
}

bool print_all_for_shell() {
  std::puts(
      "# Made by scripts/list-knobs.cc from the table in shim/config.cc; happy-run reads it.");
  if (!print_machine()) return false;
  for (const knob& k : happy::knobs()) print_shell(k);
  std::printf("happy_run_order");
  for (const auto field : happy::rising_fields) {
    const knob& k = happy::knob_of(field);
    std::printf(" %s %d", k.name, k.fallback);
  }
  std::puts("");
  return true;
}

void print_markdown() {
  std::puts("| variable | default | range | meaning |");
  std::puts("|---|---|---|---|");
  for (const knob& k : happy::knobs()) {
    std::printf("| `%s` | %s | %s | %s |\n", k.name, fallback(k).c_str(), range(k, true).c_str(),
                k.help);
  }
}

void judge(const char* variable) {
  const char* const variables[] = {variable, nullptr};
  std::puts(happy::read_environment(variables).refused == 0 ? "taken" : "refused");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "judge") == 0) {
    for (int i = 2; i < argc; ++i) judge(argv[i]);
    return 0;
  }
  const std::string form = argc == 2 ? argv[1] : "";
  if (form == "shell") return print_all_for_shell() ? 0 : 1;
  if (form == "markdown") return print_markdown(), 0;
  std::fputs("list-knobs: usage: list-knobs shell | markdown | judge NAME=VALUE...\n", stderr);
  return 2;
}
