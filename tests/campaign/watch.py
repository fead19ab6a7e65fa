"""Watching a folder with everything below it, by Linux's inotify: to strike in the middle of a write."""
import ctypes
import ctypes.util
import os
import select
import struct
import time

LIBC = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
MODIFY, MOVED_TO, CREATE, IS_FOLDER = 0x2, 0x80, 0x100, 0x40000000


class Watch:
    """Tells of files that are made, written or renamed into place."""

    def __init__(self, folder):
        self.number = LIBC.inotify_init1(os.O_NONBLOCK)
        if self.number < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self.folders = {}
        self.add(os.fspath(folder))

    def add(self, folder):
        number = LIBC.inotify_add_watch(self.number, os.fsencode(folder), MODIFY | MOVED_TO | CREATE)
        if number >= 0:
            self.folders[number] = folder
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    self.add(entry.path)

    def next(self, seconds):
        """Events until then: pairs of kind and path; empty if there were none."""
        if not select.select([self.number], [], [], max(seconds, 0))[0]:
            return []
        data, at, found = os.read(self.number, 1 << 16), 0, []
        while at < len(data):
            number, kind, _, length = struct.unpack_from("iIII", data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode(errors="replace")
            at += 16 + length
            path = os.path.join(self.folders.get(number, ""), name)
            if kind & IS_FOLDER:
                try:
                    self.add(path)
                except OSError:
                    pass  # it is gone already
            else:
                found.append((kind & 0xFFF, path))
        return found

    def close(self):
        os.close(self.number)


def wait_for_part(folder, child, kind, count, is_aim, seconds):
    """Waits for the `count`-th event of a kind on a file that is aimed at; whether it came before the child ended."""
    watch, end = Watch(folder), time.monotonic() + seconds
    try:
        while child.poll() is None and time.monotonic() < end:
            for found, path in watch.next(0.02):
                # Where it is renamed to, a file has its own name.
                if found & kind and (kind == MOVED_TO or is_aim(path)):
                    count -= 1
                    if count <= 0:
                        return True
        return False
    finally:
        watch.close()
