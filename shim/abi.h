/* The one header between libhappy.so (the shim, preloaded, libc alone) and libhappy-engine.so (loaded
 * on the first lookup of a real name). C, versioned: both sides compare HAPPY_ABI_VERSION and decline
 * on a difference.
 *
 * Unless a comment says otherwise, engine functions are called with all signals blocked, cancellation
 * disabled, on a thread marked as "inside" (hooks pass through), may allocate, and return within
 * milliseconds.
 */
#ifndef HAPPY_ABI_H
#define HAPPY_ABI_H

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAPPY_ABI_VERSION 1u

/* The functions of the program's libc (or of the next library in line) that the shim and the engine
 * call. Everything that can fail goes through this table: it is the seam where tests inject faults. */
struct happy_real {
  int (*getaddrinfo)(const char* node, const char* service, const struct addrinfo* hints,
                     struct addrinfo** result);
  void (*freeaddrinfo)(struct addrinfo* list);
  int (*connect)(int fd, const struct sockaddr* to, socklen_t length);
  int (*socket)(int domain, int type, int protocol);
  int (*bind)(int fd, const struct sockaddr* to, socklen_t length);
  int (*shutdown)(int fd, int how);
  int (*close)(int fd);
  int (*dup3)(int from, int to, int flags);
  int (*fcntl)(int fd, int command, ...);
  int (*getsockopt)(int fd, int level, int name, void* value, socklen_t* length);
  int (*setsockopt)(int fd, int level, int name, const void* value, socklen_t length);
  int (*getsockname)(int fd, struct sockaddr* to, socklen_t* length);
  int (*epoll_ctl)(int set, int operation, int fd, struct epoll_event* event);
  int (*poll)(struct pollfd* fds, nfds_t count, int timeout_ms);
  int (*open)(const char* path, int flags, ...);
  int (*stat)(const char* path, struct stat* out);
  int (*fstat)(int fd, struct stat* out);
  ssize_t (*read)(int fd, void* data, size_t size);
  ssize_t (*recvfrom)(int fd, void* data, size_t size, int flags, struct sockaddr* from,
                      socklen_t* length);
  int (*sigaction)(int number, const struct sigaction* action, struct sigaction* previous);
  int (*pthread_create)(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                        void* argument);
  int (*clock_gettime)(clockid_t clock, struct timespec* out);
};

/* A service whose records (SVCB, HTTPS) steer connects to its port. */
#define HAPPY_MAX_SERVICES 8
#define HAPPY_MAX_SCHEME 16 /* with its end */
struct happy_service {
  uint16_t port; /* 0: none */
  char scheme[HAPPY_MAX_SCHEME];
};

/* A service whose clients ask for SRV records: _NAME._tcp.DOMAIN. */
#define HAPPY_MAX_SRV_SERVICES 8
#define HAPPY_MAX_SRV_NAME 16 /* RFC 6335 s5.1: 15 characters, and its end */
struct happy_srv_service {
  char name[HAPPY_MAX_SRV_NAME]; /* "": none */
  uint16_t port; /* lookups with this port as their service mean it too; 0: by name only */
};

/* The values a user can set (HAPPY_* variables), checked: inside their ranges. Times in milliseconds. */
struct happy_settings {
  int32_t resolution_delay_ms;
  int32_t connection_attempt_delay_ms;
  int32_t minimum_connection_attempt_delay_ms;
  int32_t maximum_connection_attempt_delay_ms;
  int32_t last_resort_synthesis_delay_ms;
  int32_t preferred_address_family_count;
  int32_t partial;         /* 0: lookups return complete results only */
  int32_t disable;         /* 1: every hook is the real function; the engine never sees it */
  int32_t service_records; /* 0: none are asked for */
  int32_t keep_hints; /* 1: address hints that were not confirmed come last, 0: they are dropped */
  struct happy_service services[HAPPY_MAX_SERVICES]; /* beside https at 443 */
  uint32_t force;                                    /* HAPPY_FORCE_* bits, for tests */
  int32_t fail_call; /* the how-manieth call of the engine through the table below fails; 0: none */
  int32_t trace;     /* 0: off */
  const char* pref64;      /* HAPPY_PREF64: NAT64 prefixes by commas, or "none"; NULL: find out */
  int32_t profile;         /* which of the words of HAPPY_PROFILE */
  int32_t udp;             /* 1: UDP too goes by way of a NAT64 */
  int32_t bridge;          /* which of the words of HAPPY_BRIDGE */
  int32_t bridge_pool;     /* first octet of the addresses that stand for names without IPv4 */
  int32_t srv_patience_ms; /* how long a silent priority group of SRV holds back the next one */
  struct happy_srv_service srv[HAPPY_MAX_SRV_SERVICES];
  int32_t known_local_ula; /* 1: a ULA of this host's own /48 goes before global addresses */
  int32_t history;         /* 1: what races have shown is kept for later ones */
  int32_t history_retry_s; /* how long, at first, a family that failed is put last */
};

/* HAPPY_FORCE: what tests of this library, and other people's suites under it, can force. */
#define HAPPY_FORCE_SWAP 0x01u /* every TCP connect is handed over; the first attempt is marked */
#define HAPPY_FORCE_FAIL_THREAD 0x02u /* pthread_create() for the worker fails */
#define HAPPY_FORCE_FAIL_PROC 0x04u   /* nothing under /proc can be read */
#define HAPPY_FORCE_FAIL_EPOLL 0x08u  /* no epoll set can be made or changed */
#define HAPPY_FORCE_FAIL_DUP3 0x10u   /* no winner can be put behind the program's fd */
#define HAPPY_FORCE_FAIL_ENGINE 0x20u /* the engine is not loaded */
#define HAPPY_FORCE_FAIL_SOCKET 0x40u /* no socket of our own can be made */

/* SO_MARK of the program's own attempts under HAPPY_FORCE_SWAP ("happ"); the lab's own-drop drops them. */
#define HAPPY_SWAP_MARK 0x68617070u

/* Room for the longest name that DNS can carry in text form, and its end. */
#define HAPPY_MAX_NAME 256

/* What a forked child may have looked up. */
struct happy_hint {
  char name[HAPPY_MAX_NAME];
  int af;                     /* the families it asked for: AF_UNSPEC, AF_INET, AF_INET6 */
  struct sockaddr_storage to; /* one of the addresses; unused in what find_hint() gives */
};

/* Counts that the engine keeps and the hooks of close(), poll(), epoll_ctl() and the like look at first.
 * Written with atomic operations. */
struct happy_pending {
  uint32_t bridged; /* not 0: addresses of the bridging pool were handed out */
  /* Not 0: the program has set an IPv4 option that means nothing to TCP (ip_options.h). */
  uint32_t datagram_options;
  uint32_t races;   /* sockets of the program are being raced, or may soon be */
  uint32_t clocked; /* of these races, those whose delay the program's waiting calls watch */
  /* Raised before and after every setsockopt() of the program's while races are pending. */
  uint32_t option_changes;
  uint32_t uses_io_uring; /* not 0: it may make calls that no hook sees */
  /* Not 0: every change of an epoll set is to be made by change_epoll(). */
  uint32_t notes_registrations;
  /* Raised before a socket that shows nothing is given an attempt of its own, with the engine's lock held
   * until it has one: who wakes meanwhile has seen a socket without any, and is to look again. */
  uint32_t restarts;
  /* A set bit for every address that any lookup has given: connect() to an address whose bit is not set
   * is not looked at. */
  uint64_t known_addresses[4];
  /* SO_COOKIE of the sockets that were last replaced, and of those in their place: noted before it is done, so that a
   * call that began before is told from one whose number shows a stranger's. */
  uint64_t replaced[16][2];
  uint32_t replacements;
};

/* Of a translated socket: what connects by IPv6 to an address that the program gave as IPv4. Without the
 * flag the program takes it for an AF_INET socket; with it, for an AF_INET6 socket that speaks to
 * ::ffff:a.b.c.d. */
#define HAPPY_TRANSLATED_MAPPED 1u
/* It is a UDP socket: the addresses of datagrams are translated, too. */
#define HAPPY_TRANSLATED_DATAGRAM 2u

/* What the shim gives the engine. All of it lives as long as the process. */
struct happy_host {
  uint32_t abi_version;
  const struct happy_real* real;
  const struct happy_settings* settings;
  /* Marks the calling thread: while 1, hooks on it pass through. Returns the previous mark. */
  int (*set_inside)(int inside);
  struct happy_pending* pending;
  /* Writes one complete trace line (ends with '\n', at most PIPE_BUF bytes), or drops it.
   * Signal-safe, keeps errno. */
  void (*trace)(const char* line, size_t length);
  /* Hints between a process and those that it has forked (shim/hints.h). */
  void (*publish_hint)(const struct happy_hint* hint);
  int (*find_hint)(const struct sockaddr* to, socklen_t length, struct happy_hint* found);
  /* From now on all hooks pass through: the process is exiting. */
  void (*switch_off)(void);
  /* The table of translated sockets (shim/translated.h): remembers one by its SO_COOKIE, and finds it
   * again (0: not there). `ipv4` in network order. Lock-free. */
  void (*note_translated)(uint64_t cookie, uint32_t ipv4, uint32_t flags);
  int (*find_translated)(uint64_t cookie, uint32_t* ipv4, uint32_t* flags);
  /* Loads the library of this file name from beside libhappy.so, trusted as the engine is; its dlopen()
   * handle, or NULL and why not. Not with the engine's lock held: the loader takes locks of its own. */
  void* (*load_library)(const char* name, const char** why);
  /* The real getaddrinfo() is another preloaded library's: it alone knows where names may be asked for. */
  int32_t names_are_others;
};

/* One call of getaddrinfo(). Pointers are the program's own; `node` is not NULL. */
struct happy_question {
  const char* node;
  const char* service;
  const struct addrinfo* hints;
};

/* Where gethostbyname() and its kin want their answer: in the caller's memory. */
struct happy_host_space {
  struct hostent* host;
  char* buffer; /* of `size` bytes, for all that `host` points to */
  size_t size;
  int resolver_error; /* from the engine: h_errno; 0: `host` is the answer */
  int left_error; /* from the engine: what a success leaves in h_errno, of what was tried before */
};

/* A UDP and a TCP socket for each of 16 nameservers, for four queries. */
#define HAPPY_MAX_LOOKUP_FDS 128

/* What the caller's thread of getaddrinfo() has to do next. As with connect(), only the shim blocks. */
enum happy_lookup_step {
  HAPPY_LOOKUP_DECLINED, /* call the real getaddrinfo(); with `code` EAI_AGAIN without nameservers */
  HAPPY_LOOKUP_POLL, /* poll(fds, fd_count, timeout_ms), then lookup_continue(), whatever it said */
  HAPPY_LOOKUP_DONE /* return `code`, an EAI_* code; `list` is the answer if that is 0. With a `host`: return
                      * `code`, an errno, and what is there */
};

/* One getaddrinfo(), on the caller's stack. The engine never keeps a pointer to it. */
struct happy_lookup {
  struct happy_question question; /* from the caller */
  int complete;                   /* from the caller: wait for both families, as libc does */
  int bridge; /* from the caller: libc has no IPv4 address for the name. DONE: `list` has one of the pool
               * instead, that connect() knows; DECLINED: let the program have libc's answer */
  int single_threaded; /* from the caller: no second thread exists in the process */
  struct happy_host_space*
      host; /* from the caller: gethostbyname() it is, of the one family that the hints name */

  struct pollfd fds[HAPPY_MAX_LOOKUP_FDS];
  nfds_t fd_count;
  int timeout_ms;
  int code;
  struct addrinfo* list;
  int left_error; /* of getaddrinfo(): h_errno as libc leaves it; -1: as it is */

  uint64_t id; /* the engine's own */
};

/* One res_query() and the like, on the caller's stack. */
struct happy_query {
  /* From the caller, down to `room`. */
  const struct __res_state* state; /* whom libc would ask, and how */
  const char* name;                /* complete: nothing is searched */
  int type;                        /* of the class IN */
  unsigned char* answer;
  size_t room;

  struct pollfd fds[HAPPY_MAX_LOOKUP_FDS];
  nfds_t fd_count;
  int timeout_ms;
  int size;           /* of the reply in `answer`; -1: there is none, and */
  int error;          /* why, an errno */
  int resolver_error; /* h_errno; 0 if the reply has records */

  void* work; /* the engine's own */
};

/* What the caller's thread of a blocking connect() has to do next. Only the shim blocks: no engine
 * frame is on the stack while it does, so that cancellation and siglongjmp() meet plain C. */
enum happy_step {
  HAPPY_STEP_PASS,    /* nothing to race: call the real connect() and return its result */
  HAPPY_STEP_CONNECT, /* call the real connect() on `fd`, then connect_returned() */
  HAPPY_STEP_WAIT,    /* sleep while *word == word_value, at most wait_ns, then connect_woken() */
  HAPPY_STEP_POLL,    /* poll() for `fds`, at most wait_ns, then connect_polled() */
  HAPPY_STEP_RESULT   /* return `result`; errno is `error` if that is -1 */
};

/* The program's own socket and the hidden attempts of one race. */
#define HAPPY_MAX_CONNECT_FDS 33

/* One blocking connect(), on the caller's stack. The engine never keeps a pointer to it. */
struct happy_connect {
  /* from the caller */
  int fd;
  const struct sockaddr* to;
  socklen_t length;
  int single_threaded; /* no second thread exists in the process */
  int free_port;       /* if bound to a port, it was the kernel's choice */
  uint64_t cookie;     /* SO_COOKIE when it was called, where other threads exist; 0: not known */
  uint64_t signals;    /* those that the caller's thread had blocked */

  /* for the step that the engine asked for */
  int through;     /* CONNECT: by this number of the socket, which nobody closes; 0: by `fd` */
  int quiet;       /* CONNECT, POLL: with signals blocked, a clock tick (SO_SNDTIMEO) or wait_ns */
  uint64_t let_in; /* a quiet POLL: those that wait; first their handlers run, if no others wait */
  const uint32_t* word;
  uint32_t word_value;
  struct pollfd fds[HAPPY_MAX_CONNECT_FDS];
  nfds_t fd_count;
  int64_t wait_ns; /* -1: no limit */
  int result;
  int error;
  /* where connect_begin() may let `to` point: SRV records can give an address a port of its own */
  struct sockaddr_storage instead;

  /* the engine's own: which record, and whether it still is that one */
  uint32_t record;
  uint32_t generation;
  int stage;
  int handlers;  /* what the program had when the wait began: a handler may remove itself */
  int timed;     /* the program has set SO_SNDTIMEO */
  int restarted; /* the kernel would have made the call anew: a handler has run */
};

/* An IPv4 destination that the kernel has no route to. */
struct happy_synthesis {
  /* from the caller */
  int fd;
  const struct sockaddr* to;
  socklen_t length;
  int single_threaded; /* no second thread exists in the process */
  uint64_t
      cookie; /* SO_COOKIE of the socket that is meant, where other threads exist; 0: whatever `fd` shows */
  int may_wait; /* without a socket (`fd` is -1): whether a prefix may be looked for as long as for one that blocks */
  int connects; /* the socket will be connected to it; 0: one datagram goes there */
  uint64_t
      signals; /* blocked by the caller's thread: in a signal handler nothing is looked for, nor raced */

  /* while prefixes are looked for: poll(fds, fd_count, timeout_ms), then again, whatever it said */
  struct pollfd fds[HAPPY_MAX_LOOKUP_FDS];
  nfds_t fd_count;
  int timeout_ms;
  int64_t deadline_ns; /* the engine's own; 0 at first */

  /* `to` is an address of the bridging pool that this process was handed: whatever else is said, it must not
   * be connected to as it is */
  int bridged;

  /* there are other endpoints to try: connect_begin() knows them */
  int raced;

  /* what to connect the socket behind `fd` to instead */
  struct sockaddr_in6 destination;
};

/* What the engine gives the shim. */
struct happy_engine {
  uint32_t abi_version;

  /* getaddrinfo(), step by step, within glibc's own time limits. */
  enum happy_lookup_step (*lookup_begin)(struct happy_lookup* call);
  enum happy_lookup_step (*lookup_continue)(struct happy_lookup* call);
  /* The caller will never come back for this lookup (cancellation). */
  void (*lookup_left)(struct happy_lookup* call);
  /* Keeps what the real getaddrinfo() answered, so that connect() knows the name behind an address. */
  void (*remember)(const struct happy_question* question, const struct addrinfo* result);
  /* The same for gethostbyname(name). */
  void (*remember_host)(const char* name, const struct hostent* answer);

  /* res_query(), step by step. DECLINED: libc is to ask. */
  enum happy_lookup_step (*query_begin)(struct happy_query* call);
  enum happy_lookup_step (*query_continue)(struct happy_query* call);
  void (*query_left)(struct happy_query* call);
  /* Which nameserver of the state to ask first: 0, unless that one was silent lately. Signal-safe. */
  int (*first_nameserver)(const struct __res_state* state);

  /* The program has been given this reply to a query for SRV records. */
  void (*notice_srv)(const unsigned char* reply, size_t size);

  /* A blocking connect(), step by step. connect_begin() is the only one that may return STEP_PASS.
   * All are signal-safe: a connect() in a signal handler may have interrupted malloc(). */
  enum happy_step (*connect_begin)(struct happy_connect* call);
  enum happy_step (*connect_returned)(struct happy_connect* call, int result, int error);
  enum happy_step (*connect_woken)(struct happy_connect* call, int error);
  enum happy_step (*connect_polled)(struct happy_connect* call, int error);
  /* The caller will never come back for this connect() (cancellation). */
  void (*connect_left)(struct happy_connect* call);

  /* Whether connect() can succeed by way of a NAT64. POLL: not known yet; DONE: the socket behind `fd` is
   * one that can be connected to `destination`; DECLINED: no, and nothing has changed. */
  enum happy_lookup_step (*synthesise)(struct happy_synthesis* call);
  /* The IPv4 address behind an IPv6 one, in network order, if it lies inside a prefix in force: 1, else 0. */
  int (*ipv4_behind)(const struct in6_addr* a, uint32_t* ipv4);

  /* Non-blocking races. The descriptors `first` to `last` are about to mean something else. */
  void (*fds_closing)(unsigned first, unsigned last);
  /* The socket behind `fd` is not connecting, and will be connected anew: its race ends, unless a thread is inside
   * connect(fd), which may not have come to the kernel yet. */
  void (*connecting_anew)(int fd);
  /* The socket behind `fd` is about to be disconnected (AF_UNSPEC) under a connect() of another thread. */
  void (*disconnecting)(int fd);
  /* These are about to be another process's, too; `fds` NULL: by exec(), all that are not close-on-exec. Their races
   * end, and the program's own attempts go on. Signal-safe. */
  void (*fds_leaving)(const int* fds, unsigned count);
  /* For a thread that is about to wait: starts what is due, and says after how many nanoseconds it wants
   * to be asked again (-1: no need). `fds`: what the thread waits for other than to write (NULL:
   * everything); a socket that is replaced meanwhile wakes only those that wait to write. `signals`: as in
   * a happy_connect. */
  int64_t (*wait_limit)(const int* fds, unsigned count, uint64_t signals);
  /* The real epoll_ctl(), while no hand-over is going on. Signal-safe. */
  int (*change_epoll)(int set, int operation, int fd, struct epoll_event* event);

  /* Gives up all races and waits, at most 50 ms, until the worker has ended. With `network_changes`
   * everything known of names is forgotten as well. */
  void (*quiesce)(int network_changes);

  /* Answers that are remembered are not used any more. Signal-safe. */
  void (*forget_answers)(void);

  /* Around fork(), in the thread that forks. Between prepare and parent/child nothing else is called.
   * Prepare says 0 if the engine could not be brought to rest in time: neither of the others is called
   * then, and the child does without the engine. */
  int (*fork_prepare)(void);
  void (*fork_parent)(void);
  void (*fork_child)(void);
};

/* The engine's only export. Fills `engine` and returns 0, or returns an errno and changes nothing. */
int happy_engine_start(const struct happy_host* host, struct happy_engine* engine);

#ifdef __cplusplus
}
#endif

#endif
