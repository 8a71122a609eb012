/* Shifts the clock of a process: preloaded into the parts of an instance, with a table of seconds in the file
   that CHAOS_CLOCK names. Entry 0 applies to every process, entry n to the process with the id n. Monotonic
   clocks stay right, as they do when the clock of a machine is set. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *table;
static int64_t entries;
static int (*real_clock)(clockid_t, struct timespec *);
static int (*real_day)(struct timeval *, void *);

__attribute__((constructor)) static void prepare(void) {
    const char *name = getenv("CHAOS_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    struct stat about;
    real_clock = dlsym(RTLD_NEXT, "clock_gettime");
    real_day = dlsym(RTLD_NEXT, "gettimeofday");
    if (file < 0) return;
    if (fstat(file, &about) == 0) {
        void *found = mmap(NULL, about.st_size, PROT_READ, MAP_SHARED, file, 0);
        if (found != MAP_FAILED) {
            table = found;
            entries = about.st_size / sizeof(int64_t);
        }
    }
    close(file);
}

static int64_t shift(void) {
    int64_t id = getpid();
    return table ? table[0] + (id < entries ? table[id] : 0) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    if (!real_clock) prepare();
    int result = real_clock(clock, at);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    if (!real_day) prepare();
    int result = real_day(at, zone);
    if (result == 0) at->tv_sec += shift();
    return result;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
