// Two things that a machine can do to a program, as a library that is loaded before it (LD_PRELOAD). Rust's standard library calls these
// functions of the C library by name, so that it meets ours.
//
// 1. What the disk has. With CAMPAIGN_DISK and CAMPAIGN_SYNCED set, every fsync or fdatasync of a file below CAMPAIGN_DISK copies its content
//    to CAMPAIGN_SYNCED/f.<inode>, and one of a folder its list of names to CAMPAIGN_SYNCED/d.<inode>, before it returns. Nothing else is
//    ever durable. power.py makes of these what a file system may hold after a power cut. The disk must number files without using a
//    number twice, as tmpfs does.
// 2. A clock that jumps. With CAMPAIGN_CLOCK=SEED set, the time of day is off by up to a day either way, another day for every call; the clock that
//    only counts up is left alone, as it is by whoever sets a clock.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) {
  perror(what);
  abort();
}

static void put(int to, const void *from, size_t length) {
  for (const char *at = from; length > 0;) {
    ssize_t n = write(to, at, length);
    if (n < 0) die("campaign shim: write");
    at += n;
    length -= n;
  }
}

// Copies what the disk has now of this file or folder.
static void keep(int fd) {
  const char *disk = getenv("CAMPAIGN_DISK"), *synced = getenv("CAMPAIGN_SYNCED");
  if (!disk || !synced) return;
  char self[64], path[PATH_MAX], part[PATH_MAX], place[PATH_MAX];
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(self, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = 0;
  size_t root = strlen(disk);
  if (strncmp(path, disk, root) != 0 || (path[root] != '/' && path[root] != 0)) return;
  struct stat about;
  if (fstat(fd, &about) != 0) die("campaign shim: fstat");
  char kind = S_ISDIR(about.st_mode) ? 'd' : 'f';
  snprintf(place, sizeof place, "%s/%c.%lu", synced, kind, (unsigned long)about.st_ino);
  static __thread unsigned count;
  snprintf(part, sizeof part, "%s/part.%d.%lu.%u", synced, getpid(), (unsigned long)(uintptr_t)&count, count);
  count++;
  int to = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (to < 0) die(part);
  if (kind == 'd') {
    DIR *folder = opendir(self);
    if (!folder) die("campaign shim: opendir");
    for (struct dirent *entry; (entry = readdir(folder));) {
      if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      char line[NAME_MAX + 64];
      int n = snprintf(line, sizeof line, "%lu %c %s", (unsigned long)entry->d_ino, entry->d_type == DT_DIR ? 'd' : 'f', entry->d_name);
      put(to, line, n + 1);
    }
    closedir(folder);
  } else {
    int from = open(self, O_RDONLY);
    if (from < 0) die("campaign shim: open");
    char block[1 << 16];
    for (ssize_t n; (n = read(from, block, sizeof block)) > 0;) put(to, block, n);
    close(from);
  }
  close(to);
  if (rename(part, place) != 0) die("campaign shim: rename");
}

int fsync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  int done = real(fd);
  if (done == 0) keep(fd);
  return done;
}

int fdatasync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  int done = real(fd);
  if (done == 0) keep(fd);
  return done;
}

int clock_gettime(clockid_t which, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(which, now);
  const char *seed = getenv("CAMPAIGN_CLOCK");
  if (done == 0 && which == CLOCK_REALTIME && seed) {
    static uint64_t calls;
    uint64_t x = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) + strtoull(seed, NULL, 10) * 1000003;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    now->tv_sec += (int64_t)((x ^ (x >> 31)) % 172800) - 86400;
  }
  return done;
}
