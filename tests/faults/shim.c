/* Loaded before libc (LD_PRELOAD): counts the calls that change what is below one folder, and lets one of them fail, or
   the process die at it.

   A disk that is full takes half of one more write, and then nothing that needs room; a broken one takes nothing. What
   was counted lies in memory that is shared with the process that forked this one, so that a kill does not lose it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALLS 4096
#define PAGE 4096

enum mode { NOTHING, KILL, TORN, ONCE, ONWARD, INTERRUPT };
/* What a call needs: a full disk refuses only what needs room. */
enum need { ROOM, NO_ROOM };

struct seen {
    atomic_long calls, fired;
    char call[32], path[PATH_MAX], kinds[CALLS];
};

static struct seen *seen;
static char folder[PATH_MAX];
static size_t length;
static long wanted;
static int mode, failure;
static pid_t armed;

__attribute__((constructor)) static void start(void) {
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Called from Python: in this process and in those it forks, the n-th call from now on does what `how` says. */
void shim_arm(const char *where, long n, int how, int error) {
    snprintf(folder, sizeof folder, "%s", where);
    length = strlen(folder);
    wanted = n, mode = how, failure = error;
    atomic_store(&seen->calls, 0);
    atomic_store(&seen->fired, 0);
    seen->call[0] = seen->path[0] = 0;
    memset(seen->kinds, 0, CALLS);
}

void shim_begin(void) { armed = getpid(); }
long shim_calls(void) { return atomic_load(&seen->calls); }
long shim_fired(void) { return atomic_load(&seen->fired); }
const char *shim_call(void) { return seen->call; }
const char *shim_path(void) { return seen->path; }
/* One letter for each call: a write, something else that needs room, anything else. */
const char *shim_kinds(void) { return seen->kinds; }

static int below(const char *path) {
    return !strncmp(path, folder, length) && (path[length] == '/' || path[length] == 0);
}

static int of_handle(int handle, char *path) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(name, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
    return size > 0;
}

static void whole(int at, const char *name, char *path) {
    char from[PATH_MAX] = "";
    if (name[0] != '/') {
        if (at == AT_FDCWD) {
            if (!getcwd(from, sizeof from)) from[0] = 0;
        } else {
            of_handle(at, from);
        }
    }
    if (from[0]) snprintf(path, PATH_MAX, "%.2000s/%.2000s", from, name);
    else snprintf(path, PATH_MAX, "%s", name);
}

/* Whether this call fails; or the process ends here. `half` is set where a write is to be cut short. */
static int judge(const char *call, const char *path, enum need need, int *half) {
    if (!armed || armed != getpid() || !below(path)) return 0;
    long n = atomic_fetch_add(&seen->calls, 1) + 1;
    if (n < CALLS) seen->kinds[n - 1] = half ? 'w' : need == ROOM ? 'r' : '-';
    int first = n == wanted, later = n > wanted && atomic_load(&seen->fired) && mode == ONWARD;
    if (!first && !later) return 0;
    if (first) {
        snprintf(seen->call, sizeof seen->call, "%s", call);
        snprintf(seen->path, sizeof seen->path, "%s", path);
        atomic_store(&seen->fired, 1);
    }
    switch (mode) {
    case KILL:
        kill(getpid(), SIGKILL);
        pause();
        return 0;
    case TORN:
        if (half) return *half = 1;
        kill(getpid(), SIGKILL);
        pause();
        return 0;
    case INTERRUPT:
        kill(getpid(), SIGINT);
        return 0;
    case ONWARD:
    case ONCE:
        if (need == NO_ROOM && (failure == ENOSPC || failure == EDQUOT)) return 0;
        if (first && half && mode == ONWARD && failure == ENOSPC) *half = 1;
        errno = failure;
        return 1;
    }
    return 0;
}

static int fails_at(const char *call, int at, const char *name, enum need need) {
    char path[PATH_MAX];
    if (!armed) return 0;
    int before = errno;
    whole(at, name, path);
    errno = before;
    return judge(call, path, need, NULL);
}

static int fails_on(const char *call, int handle, enum need need, int *half) {
    char path[PATH_MAX];
    if (!armed) return 0;
    int before = errno;
    int found = of_handle(handle, path);
    errno = before;
    return found && judge(call, path, need, half);
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int opening(int at, const char *name, int flags) {
    if (!(flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR))) return 0;
    char path[PATH_MAX];
    if (!armed) return 0;
    int before = errno;
    whole(at, name, path);
    int there = access(path, F_OK) == 0;
    errno = before;
    return judge("open", path, there ? NO_ROOM : ROOM, NULL);
}

#define MODE(flags, last) mode_t rights = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, last); rights = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) { MODE(flags, flags) REAL(open); return opening(AT_FDCWD, path, flags) ? -1 : real(path, flags, rights); }
int open64(const char *path, int flags, ...) { MODE(flags, flags) REAL(open64); return opening(AT_FDCWD, path, flags) ? -1 : real(path, flags, rights); }
int openat(int at, const char *path, int flags, ...) { MODE(flags, flags) REAL(openat); return opening(at, path, flags) ? -1 : real(at, path, flags, rights); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags, flags) REAL(openat64); return opening(at, path, flags) ? -1 : real(at, path, flags, rights); }
int creat(const char *path, mode_t rights) { REAL(creat); return opening(AT_FDCWD, path, O_CREAT) ? -1 : real(path, rights); }

static int writes(const char *how) { return strpbrk(how, "wa+") != NULL; }
FILE *fopen(const char *path, const char *how) { REAL(fopen); return writes(how) && opening(AT_FDCWD, path, O_CREAT) ? NULL : real(path, how); }
FILE *fopen64(const char *path, const char *how) { REAL(fopen64); return writes(how) && opening(AT_FDCWD, path, O_CREAT) ? NULL : real(path, how); }

/* A write: whole, refused, or its first half, after which a torn one dies. Pages inside a file are written whole. */
#define WRITING(call, handle, size, page, attempt) \
    int half = 0; \
    int failed = fails_on(#call, handle, ROOM, &half); \
    if (half && (size) / 2 >= page) { \
        size = size / 2 / page * page; \
        ssize_t done = attempt; \
        if (mode == TORN) { kill(getpid(), SIGKILL); pause(); } \
        return done; \
    } \
    if (half && mode == TORN) { kill(getpid(), SIGKILL); pause(); } \
    return failed ? -1 : attempt;

ssize_t write(int handle, const void *data, size_t size) { REAL(write); WRITING(write, handle, size, 1, real(handle, data, size)) }
ssize_t pwrite(int handle, const void *data, size_t size, off_t at) { REAL(pwrite); WRITING(pwrite, handle, size, PAGE, real(handle, data, size, at)) }
ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) { REAL(pwrite64); WRITING(pwrite, handle, size, PAGE, real(handle, data, size, at)) }
ssize_t writev(int handle, const struct iovec *parts, int count) { REAL(writev); return fails_on("writev", handle, ROOM, NULL) ? -1 : real(handle, parts, count); }
ssize_t pwritev(int handle, const struct iovec *parts, int count, off_t at) { REAL(pwritev); return fails_on("pwritev", handle, ROOM, NULL) ? -1 : real(handle, parts, count, at); }

int fsync(int handle) { REAL(fsync); return fails_on("fsync", handle, ROOM, NULL) ? -1 : real(handle); }
int fdatasync(int handle) { REAL(fdatasync); return fails_on("fdatasync", handle, ROOM, NULL) ? -1 : real(handle); }
int ftruncate(int handle, off_t size) { REAL(ftruncate); return fails_on("ftruncate", handle, NO_ROOM, NULL) ? -1 : real(handle, size); }
int ftruncate64(int handle, off64_t size) { REAL(ftruncate64); return fails_on("ftruncate", handle, NO_ROOM, NULL) ? -1 : real(handle, size); }
int truncate(const char *path, off_t size) { REAL(truncate); return fails_at("truncate", AT_FDCWD, path, NO_ROOM) ? -1 : real(path, size); }
int fallocate(int handle, int how, off_t at, off_t size) { REAL(fallocate); return fails_on("fallocate", handle, ROOM, NULL) ? -1 : real(handle, how, at, size); }
int fallocate64(int handle, int how, off64_t at, off64_t size) { REAL(fallocate64); return fails_on("fallocate", handle, ROOM, NULL) ? -1 : real(handle, how, at, size); }
int posix_fallocate(int handle, off_t at, off_t size) { REAL(posix_fallocate); return fails_on("fallocate", handle, ROOM, NULL) ? errno : real(handle, at, size); }
int fchmod(int handle, mode_t rights) { REAL(fchmod); return fails_on("fchmod", handle, NO_ROOM, NULL) ? -1 : real(handle, rights); }
int chmod(const char *path, mode_t rights) { REAL(chmod); return fails_at("chmod", AT_FDCWD, path, NO_ROOM) ? -1 : real(path, rights); }
int fchmodat(int at, const char *path, mode_t rights, int flags) { REAL(fchmodat); return fails_at("chmod", at, path, NO_ROOM) ? -1 : real(at, path, rights, flags); }

int rename(const char *from, const char *to) { REAL(rename); return fails_at("rename", AT_FDCWD, to, ROOM) ? -1 : real(from, to); }
int renameat(int at, const char *from, int there, const char *to) { REAL(renameat); return fails_at("rename", there, to, ROOM) ? -1 : real(at, from, there, to); }
int renameat2(int at, const char *from, int there, const char *to, unsigned flags) { REAL(renameat2); return fails_at("rename", there, to, ROOM) ? -1 : real(at, from, there, to, flags); }
int link(const char *from, const char *to) { REAL(link); return fails_at("link", AT_FDCWD, to, ROOM) ? -1 : real(from, to); }
int linkat(int at, const char *from, int there, const char *to, int flags) { REAL(linkat); return fails_at("link", there, to, ROOM) ? -1 : real(at, from, there, to, flags); }
int unlink(const char *path) { REAL(unlink); return fails_at("unlink", AT_FDCWD, path, NO_ROOM) ? -1 : real(path); }
int unlinkat(int at, const char *path, int flags) { REAL(unlinkat); return fails_at("unlink", at, path, NO_ROOM) ? -1 : real(at, path, flags); }
int remove(const char *path) { REAL(remove); return fails_at("unlink", AT_FDCWD, path, NO_ROOM) ? -1 : real(path); }
int mkdir(const char *path, mode_t rights) { REAL(mkdir); return fails_at("mkdir", AT_FDCWD, path, ROOM) ? -1 : real(path, rights); }
int mkdirat(int at, const char *path, mode_t rights) { REAL(mkdirat); return fails_at("mkdir", at, path, ROOM) ? -1 : real(at, path, rights); }
int rmdir(const char *path) { REAL(rmdir); return fails_at("rmdir", AT_FDCWD, path, NO_ROOM) ? -1 : real(path); }

/* The file is closed whatever is said, as the system does it. */
int close(int handle) {
    REAL(close);
    int flags = armed ? fcntl(handle, F_GETFL) : -1;
    int failed = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fails_on("close", handle, NO_ROOM, NULL);
    int done = real(handle);
    if (failed) errno = failure;
    return failed ? -1 : done;
}
