/*
 * Preloaded into redis-server, it makes the server's clock show what a file says: 8 bytes, microseconds since 1970. So a real server lives in
 * the same virtual time as the model that is compared with it: on a real clock the two would never see the same microsecond, and
 * expiry could only be compared roughly. Redis asks gettimeofday() for everything that its users see of time; libfaketime, which also
 * changes the clocks that its event loop needs, stops Redis 7.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static const volatile int64_t *clock_us;

__attribute__((constructor)) static void open_clock(void) {
  const char *file = getenv("HOLDFAST_CLOCK_FILE");
  int descriptor = file ? open(file, O_RDONLY) : -1;
  void *memory = descriptor < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    fputs("HOLDFAST_CLOCK_FILE names no file with the time\n", stderr);
    _exit(1);
  }
  clock_us = memory;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  int64_t now_us = *clock_us;
  time->tv_sec = now_us / 1000000;
  time->tv_usec = now_us % 1000000;
  return 0;
}
