// Asks for names in many ways and shows, one line each, everything that a program can see of the answers.
//
//   parity FILE
//
// Each line of FILE is one question, its words separated by tabs:
//   getaddrinfo NAME SERVICE FAMILY TYPE PROTOCOL FLAGS    "-" for NULL; FAMILY "null": hints are NULL
//   gethostbyname NAME
//   gethostbyname2 NAME FAMILY
//   gethostbyname_r NAME SIZE                              of the buffer
//   gethostbyname2_r NAME FAMILY SIZE
// %XX in a name is that byte.

#include "victim.h"

#include <locale.h>

#define MAX_LINE 2048
#define MAX_WORDS 8

static void print_bytes(const void* data, size_t size) {
  const unsigned char* byte = data;
  for (size_t i = 0; i < size; ++i) printf("%02x", byte[i]);
}

static void print_name(const char* name) {
  if (!name) printf("-");
  for (; name && *name; ++name)
    printf(*name > ' ' && *name < 127 ? "%c" : "\\%03o", (unsigned char)*name);
}

static void decode(char* word) {
  char* to = word;
  for (; *word; ++word, ++to) {
    unsigned byte;
    if (*word == '%' && sscanf(word + 1, "%2x", &byte) == 1) {
      *to = (char)byte;
      word += 2;
    } else {
      *to = *word;
    }
  }
  *to = 0;
}

static const char* or_null(const char* word) { return strcmp(word, "-") ? word : NULL; }

static void print_list(const struct addrinfo* info) {
  for (; info; info = info->ai_next) {
    printf(" [%x %d %d %d %u ", (unsigned)info->ai_flags, info->ai_family, info->ai_socktype,
           info->ai_protocol, (unsigned)info->ai_addrlen);
    const void* address = &((const struct sockaddr_in*)info->ai_addr)->sin_addr;
    if (info->ai_family == AF_INET6) {
      const struct sockaddr_in6* six = (const struct sockaddr_in6*)info->ai_addr;
      if (six->sin6_flowinfo || six->sin6_scope_id)
        printf("flow %x scope %u ", six->sin6_flowinfo, six->sin6_scope_id);
      address = &six->sin6_addr;
    }
    char text[INET6_ADDRSTRLEN] = "?";
    inet_ntop(info->ai_addr->sa_family, address, text, sizeof text);
    printf("%d %s %u ", info->ai_addr->sa_family, text,
           ntohs(((const struct sockaddr_in*)info->ai_addr)->sin_port));
    if (info->ai_family == AF_INET)
      print_bytes(((const struct sockaddr_in*)info->ai_addr)->sin_zero, 8);
    print_name(info->ai_canonname);
    printf("]");
  }
}

static void ask_getaddrinfo(char** words) {
  struct addrinfo hints = {.ai_family = atoi(words[3]),
                           .ai_socktype = atoi(words[4]),
                           .ai_protocol = atoi(words[5]),
                           .ai_flags = (int)strtol(words[6], NULL, 16)};
  struct addrinfo* list = (struct addrinfo*)(void*)&hints;  // glibc leaves it alone on failure
  errno = 0;
  int code = getaddrinfo(or_null(words[1]), or_null(words[2]),
                         strcmp(words[3], "null") ? &hints : NULL, &list);
  int error = errno;
  printf("%d h_errno %d", code, h_errno);
  if (code == EAI_SYSTEM) printf(" %s", strerrorname_np(error));
  if (code && list != (struct addrinfo*)(void*)&hints) printf(" result changed");
  if (code) return;
  print_list(list);
  freeaddrinfo(list);
}

static void print_host(const struct hostent* host) {
  print_name(host->h_name);
  for (char** alias = host->h_aliases; *alias; ++alias) {
    printf(" alias ");
    print_name(*alias);
  }
  printf(" %d %d", host->h_addrtype, host->h_length);
  for (char** address = host->h_addr_list; *address; ++address) {
    printf(" ");
    print_bytes(*address, (size_t)host->h_length);
  }
}

static void print_hostent(const struct hostent* host, int error) {
  if (host) {
    print_host(host);
    printf(" h_errno %d errno %d", h_errno, error);
  } else
    printf("none h_errno %d%s%s", h_errno, h_errno == NETDB_INTERNAL ? " " : "",
           h_errno == NETDB_INTERNAL ? strerrorname_np(error) : "");
}

static void print_reentrant(int code, const struct hostent* space, const struct hostent* answer,
                            int resolver_error, int error) {
  printf("%d ", code);
  if (answer) {
    print_host(answer);
    printf(" h_errno %d errno %d", resolver_error, error);
  } else {
    printf("none h_errno %d errno %d", resolver_error, error);
  }
  if (answer && answer != space) printf(" elsewhere");
}

static void ask(char** words) {
  static char buffer[1 << 16];
  struct hostent space, *answer = &space;
  int resolver_error = 77;
  errno = 0;
  h_errno = 78;
  if (!strcmp(words[0], "getaddrinfo")) {
    ask_getaddrinfo(words);
  } else if (!strcmp(words[0], "gethostbyname")) {
    answer = gethostbyname(words[1]);
    print_hostent(answer, errno);
  } else if (!strcmp(words[0], "gethostbyname2")) {
    answer = gethostbyname2(words[1], atoi(words[2]));
    print_hostent(answer, errno);
  } else if (!strcmp(words[0], "gethostbyname_r")) {
    int code =
        gethostbyname_r(words[1], &space, buffer, (size_t)atoi(words[2]), &answer, &resolver_error);
    print_reentrant(code, &space, answer, resolver_error, errno);
  } else if (!strcmp(words[0], "gethostbyname2_r")) {
    int code = gethostbyname2_r(words[1], atoi(words[2]), &space, buffer, (size_t)atoi(words[3]),
                                &answer, &resolver_error);
    print_reentrant(code, &space, answer, resolver_error, errno);
  } else {
    printf("unknown question");
  }
  puts("");
}

int main(int argc, char** argv) {
  FILE* questions = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (!questions) return 2;
  setlocale(LC_ALL, "C.UTF-8");
  static char line[MAX_LINE];
  while (fgets(line, sizeof line, questions)) {
    char* words[MAX_WORDS] = {NULL};
    char* rest = line;
    line[strcspn(line, "\n")] = 0;
    for (int i = 0; i < MAX_WORDS - 1 && rest; ++i) words[i] = strsep(&rest, "\t");
    if (words[1]) decode(words[1]);
    ask(words);
    fflush(stdout);
  }
  return 0;
}
