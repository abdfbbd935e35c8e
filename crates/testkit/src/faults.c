/* Faults of disk and clock for one process, loaded by LD_PRELOAD (faults.rs).
 *
 * A file holds what is wrong at the moment; it is mapped, so that a change holds at once for all processes:
 *   clock_ms        added to the clock of the day; the monotonic clock is left alone, as the kernel does
 *   write_us        a write to the disk takes so much longer
 *   sync_us         a sync of the disk takes so much longer
 *   write_errno     a write to the disk fails with this error
 *   sync_errno      a sync of the disk fails with this error
 *   one_in          only every so many calls fail
 * "The disk" are regular files of one device. Sockets, pipes and log files elsewhere are left alone.
 * Only calls through libc are seen: those of std, tokio and SQLite.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t clock_ms, write_us, sync_us, write_errno, sync_errno, one_in;
};

static volatile const struct control *control;
static uint64_t device;
static atomic_uint calls;
static int (*libc_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void attach(void) {
    const char *file = getenv("STAMPEDE_FAULTS_CONTROL"), *disk = getenv("STAMPEDE_FAULTS_DEVICE");
    libc_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (!file || !disk) return;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    void *map = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    device = strtoull(disk, NULL, 10);
    if (map != MAP_FAILED) control = map;
}

static int on_the_disk(int fd) {
    struct stat status;
    return control && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == device;
}

static void wait_us(int64_t us) {
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (us > 0 && nanosleep(&left, &left) != 0) {}
}

/* 0: go on. Otherwise errno is set. */
static int fails(int64_t error) {
    int64_t one_in = control->one_in;
    if (error == 0 || (one_in > 1 && atomic_fetch_add(&calls, 1) % one_in != 0)) return 0;
    errno = (int)error;
    return -1;
}

static int before_write(int fd) {
    if (!control || (!control->write_us && !control->write_errno)) return 0;
    int before = errno;
    if (!on_the_disk(fd)) return errno = before, 0;
    wait_us(control->write_us);
    errno = before;
    return fails(control->write_errno);
}

static int before_sync(void) {
    wait_us(control->sync_us);
    return fails(control->sync_errno);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    return before_write(fd) ? -1 : syscall(SYS_write, fd, bytes, length);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    return before_write(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    return before_write(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, length, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return before_write(fd) ? -1 : syscall(SYS_writev, fd, parts, count);
}

int fsync(int fd) {
    return on_the_disk(fd) && before_sync() ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    return on_the_disk(fd) && before_sync() ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int msync(void *start, size_t length, int flags) {
    return control && before_sync() ? -1 : (int)syscall(SYS_msync, start, length, flags);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = libc_clock_gettime ? libc_clock_gettime(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t step = control->clock_ms, ns = now->tv_nsec + step % 1000 * 1000000;
        now->tv_sec += step / 1000 + (ns >= 1000000000) - (ns < 0);
        now->tv_nsec = ns + (ns < 0 ? 1000000000 : 0) - (ns >= 1000000000 ? 1000000000 : 0);
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds) {
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
    if (seconds) *seconds = exact.tv_sec;
    return exact.tv_sec;
}
