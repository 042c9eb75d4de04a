/*
 * Preloaded into redis-server, it gives the server a clock that stands still except while the server sleeps: DEBUG SLEEP then takes no time,
 * and moves the clock, back too where the time is negative. So a real server lives in the same virtual time as the model that is compared
 * with it: on a real clock the two would never see the same microsecond, and expiry could only be compared roughly. Redis asks
 * gettimeofday() for everything that its users see of time; its event loop has another clock, which goes on. libfaketime changes that one,
 * too, and stops Redis 7.
 */
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

static int64_t now_us = 1700000000000000;

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  time->tv_sec = now_us / 1000000;
  time->tv_usec = now_us % 1000000;
  return 0;
}

int nanosleep(const struct timespec *duration, struct timespec *left) {
  (void)left;
  now_us += (int64_t)duration->tv_sec * 1000000 + duration->tv_nsec / 1000;
  return 0;
}
