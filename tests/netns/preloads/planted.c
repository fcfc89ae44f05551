// An engine that an attacker would like to see loaded: it says so in a file. Built by the tests with cc -shared.

#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) static void run(void) {
  close(open(PLANTED, O_CREAT | O_WRONLY, 0600));
}
