// Records a process's unsynchronized writes to databases, so that a loss of power can be simulated: see scripts/kills
// --power-loss. This library is preloaded (LD_PRELOAD). It replaces the functions of the C library with which SQLite
// changes files on Linux: open64, close, write, pwrite64, ftruncate64, fdatasync, fsync, unlink. It does not record
// writes by other functions, or to mapped memory.
//
// Beside each file FILE below the folder LIFELINE_POWER_LOSS whose name has ".sqlite" in it:
//   FILE.durable   its content at the last synchronization
//   FILE.unsynced  the later changes: records, each followed by its bytes
//
// A record is written before the file is changed, and a record of kind SYNCED after the file is synchronized. So both
// can be read even if the process is killed at any time.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITTEN = 1, TRUNCATED = 2, SYNCED = 3 };

// In the machine's byte order.
typedef struct {
    uint64_t kind;
    uint64_t offset;
    uint64_t length;
} Record;

typedef struct {
    char path[1024];
    int unsynced;
} File;

enum { FILE_LIMIT = 64, DESCRIPTOR_LIMIT = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static File files[FILE_LIMIT];
static int file_count;
// By descriptor: the file's index plus one; 0 if it is not recorded.
static unsigned char file_of[DESCRIPTOR_LIMIT];

static int (*real_open64)(const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
static int (*real_ftruncate64)(int, off64_t);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);

// Called first in each replaced function, because other libraries may call them before this one is initialized.
static void find_functions(void) {
    if (real_unlink) return;
    *(void **)&real_open64 = dlsym(RTLD_NEXT, "open64");
    *(void **)&real_close = dlsym(RTLD_NEXT, "close");
    *(void **)&real_write = dlsym(RTLD_NEXT, "write");
    *(void **)&real_pwrite64 = dlsym(RTLD_NEXT, "pwrite64");
    *(void **)&real_ftruncate64 = dlsym(RTLD_NEXT, "ftruncate64");
    *(void **)&real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    *(void **)&real_unlink = dlsym(RTLD_NEXT, "unlink");
}

static void fail(const char *what, const char *path) {
    fprintf(stderr, "power_loss: %s %s: %s\n", what, path, strerror(errno));
    // Another handler could wait for the lock.
    signal(SIGABRT, SIG_DFL);
    abort();
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

// The shared memory of a write-ahead log is created again after a loss of power, and locks have no content.
static bool is_recorded(const char *path) {
    const char *folder = getenv("LIFELINE_POWER_LOSS");
    return folder && strncmp(path, folder, strlen(folder)) == 0 && strstr(path, ".sqlite") && !ends_with(path, "-shm")
        && !ends_with(path, ".lock") && !ends_with(path, ".durable") && !ends_with(path, ".unsynced");
}

static int open_beside(const char *path, const char *end, int flags) {
    char name[1100];
    snprintf(name, sizeof name, "%s%s", path, end);
    return real_open64(name, flags | O_CREAT | O_RDWR | O_CLOEXEC, 0600);
}

static void remember(int descriptor, const char *path) {
    if (descriptor >= DESCRIPTOR_LIMIT) fail("too many files are open for", path);
    int index = 0;
    while (index < file_count && strcmp(files[index].path, path) != 0) index++;
    if (index == file_count) {
        if (file_count == FILE_LIMIT || strlen(path) >= sizeof files[0].path) fail("too many files, or too long", path);
        strcpy(files[index].path, path);
        files[index].unsynced = open_beside(path, ".unsynced", O_APPEND);
        if (files[index].unsynced < 0) fail("cannot record", path);
        file_count++;
    }
    file_of[descriptor] = (unsigned char)(index + 1);
}

static File *file(int descriptor) {
    if (descriptor < 0 || descriptor >= DESCRIPTOR_LIMIT || file_of[descriptor] == 0) return NULL;
    return &files[file_of[descriptor] - 1];
}

static void record(File *file, Record record, const void *bytes) {
    struct iovec parts[2] = {{&record, sizeof record}, {(void *)bytes, bytes ? record.length : 0}};
    ssize_t length = (ssize_t)(parts[0].iov_len + parts[1].iov_len);
    if (writev(file->unsynced, parts, bytes ? 2 : 1) != length) fail("cannot record", file->path);
}

// Applies the recorded writes to the content that survives. If the process is killed meanwhile, the reader of the two
// files does it again.
static void make_durable(File *file) {
    int durable = open_beside(file->path, ".durable", 0);
    if (durable < 0) fail("cannot keep", file->path);
    off64_t position = 0;
    Record next;
    char *bytes = NULL;
    while (pread64(file->unsynced, &next, sizeof next, position) == (ssize_t)sizeof next) {
        position += (off64_t)sizeof next;
        if (next.kind == TRUNCATED && real_ftruncate64(durable, (off64_t)next.offset) != 0) fail("cannot cut", file->path);
        if (next.kind != WRITTEN) continue;
        bytes = realloc(bytes, next.length);
        if (!bytes || pread64(file->unsynced, bytes, next.length, position) != (ssize_t)next.length
            || real_pwrite64(durable, bytes, next.length, (off64_t)next.offset) != (ssize_t)next.length) {
            fail("cannot keep", file->path);
        }
        position += (off64_t)next.length;
    }
    free(bytes);
    real_close(durable);
    if (real_ftruncate64(file->unsynced, 0) != 0) fail("cannot empty the record of", file->path);
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    find_functions();
    int descriptor = real_open64(path, flags, mode);
    if (descriptor >= 0 && is_recorded(path)) {
        pthread_mutex_lock(&lock);
        remember(descriptor, path);
        pthread_mutex_unlock(&lock);
    }
    return descriptor;
}

int close(int descriptor) {
    find_functions();
    pthread_mutex_lock(&lock);
    if (file(descriptor)) file_of[descriptor] = 0;
    pthread_mutex_unlock(&lock);
    return real_close(descriptor);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    find_functions();
    pthread_mutex_lock(&lock);
    File *written = file(descriptor);
    if (written) record(written, (Record){WRITTEN, (uint64_t)offset, count}, bytes);
    ssize_t result = real_pwrite64(descriptor, bytes, count, offset);
    if (written && result != (ssize_t)count) fail("cannot write as much as was recorded to", written->path);
    pthread_mutex_unlock(&lock);
    return result;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    find_functions();
    // Without the lock, so that writes to other files do not wait for those to databases.
    if (!file(descriptor)) return real_write(descriptor, bytes, count);
    off64_t offset = lseek64(descriptor, 0, SEEK_CUR);
    ssize_t result = pwrite64(descriptor, bytes, count, offset);
    if (result > 0) lseek64(descriptor, result, SEEK_CUR);
    return result;
}

int ftruncate64(int descriptor, off64_t length) {
    find_functions();
    pthread_mutex_lock(&lock);
    File *cut = file(descriptor);
    if (cut) record(cut, (Record){TRUNCATED, (uint64_t)length, 0}, NULL);
    int result = real_ftruncate64(descriptor, length);
    pthread_mutex_unlock(&lock);
    return result;
}

int fdatasync(int descriptor) {
    find_functions();
    // Under the lock, because concurrent writes of other threads would not be synchronized.
    pthread_mutex_lock(&lock);
    int result = real_fdatasync(descriptor);
    File *synced = file(descriptor);
    if (synced && result == 0) {
        record(synced, (Record){SYNCED, 0, 0}, NULL);
        make_durable(synced);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int descriptor) { return fdatasync(descriptor); }

// A removed file does not come back.
int unlink(const char *path) {
    find_functions();
    if (is_recorded(path)) {
        char name[1100];
        pthread_mutex_lock(&lock);
        snprintf(name, sizeof name, "%s.durable", path);
        real_unlink(name);
        for (int index = 0; index < file_count; index++) {
            if (strcmp(files[index].path, path) == 0 && real_ftruncate64(files[index].unsynced, 0) != 0) {
                fail("cannot empty the record of", path);
            }
        }
        pthread_mutex_unlock(&lock);
    }
    return real_unlink(path);
}
