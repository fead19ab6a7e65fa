"""What a machine refuses: a read-only or forbidden folder, files that may not grow, memory, a clock that jumps, and others who work on the same.

Every case must end in an error in words, or be killed by the system; the last good state must be whole, and once the limit is gone the same command must
end as if nothing had been. `unshare` makes two hosts of one: names, process numbers and boots differ as on two machines, but not the kernel's file locks, so
what keeps them apart here is at least the leases that two machines would have.
"""
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

import disk
import jobs
import kill as kills
import power
import same
from common import PATIENCE, PROGRAM, Finding, Log, check_words, empty, environment, kill, run, start

ABORTED = -signal.SIGABRT


class Case:
    """Where one case is tried."""

    def __init__(self, options, inputs, chance, job):
        self.options, self.inputs, self.chance, self.job = options, inputs, chance, job
        self.place = options.work / "whole" / job.name.replace(" ", "-")
        self.seconds = kills.whole(job, self.place, environment())
        self.here = empty(options.work / "trial")

    def begin(self, here=None):
        """Work that was killed on its way, so that there is something to lose."""
        child = start(self.job.steps[0], here or self.here)
        time.sleep(self.chance.uniform(0.3, 0.8) * self.seconds[0])
        kill(child)

    def refused(self, words, codes=(2,), here=None, **limits):
        """Runs all steps under a limit; the first that fails must fail as it should. Whether one failed."""
        here = here or self.here
        for step in self.job.steps:
            said = here.parent / "limited.said"
            child = start(step, here, said=said, **limits)
            code = child.wait(PATIENCE)
            text = said.read_text(errors="replace")
            check_words(step, code, text)
            if code == 0:
                continue
            if code not in codes:
                raise Finding(f"{' '.join(step)}: ends with {code}: {text[-600:]}")
            if code == 2 and not any(word in text for word in words):
                raise Finding(f"{' '.join(step)}: none of {words} in: {text[-600:]}")
            same.check_files(here)
            return True
        return False

    def finish(self, here=None):
        here = here or self.here
        self.job.settle(here)
        same.compare(here / self.job.run_folder, self.place / self.job.run_folder)


def read_only(case):
    with disk.Mount(case.options.work / "full" / "disk") as mount:
        mount.clear()
        case.begin(mount.place)
        subprocess.run(["mount", "-o", "remount,ro", mount.place], check=True)
        failed = case.refused(["ead-only"], here=mount.place)
        subprocess.run(["mount", "-o", "remount,rw", mount.place], check=True)
        case.finish(mount.place)
        return failed


def no_permission(case):
    """As nobody, in a folder of root's."""
    case.begin()
    os.chmod(case.here, 0o755)
    failed = case.refused(["ermission denied"], user=65534, group=65534, extra_groups=[])
    case.finish()
    return failed


def limited(**limits):
    """For the child: limits of the system; too large a file is an error then, not a signal."""

    def set_them():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, name), (value, value))

    return {"preexec_fn": set_them, "restore_signals": False}


def large_files(case):
    case.begin()
    largest = max(path.stat().st_size for path in case.place.rglob("*") if path.is_file())
    failed = case.refused(["too large", "disk"], **limited(RLIMIT_FSIZE=case.chance.randint(1, largest)))
    case.finish()
    return failed


def few_handles(case):
    case.begin()
    failed = case.refused(["many open files", "os error 24"], **limited(RLIMIT_NOFILE=case.chance.randint(5, 14)))
    case.finish()
    return failed


def addresses(case):
    """`ulimit -v`: Rust's own end is an abort that names the allocation."""
    case.begin()
    failed = case.refused(["memory", "os error 12", "thread", "os error 11"], (2, ABORTED), **limited(RLIMIT_AS=case.chance.randint(56, 160) << 20))
    case.finish()
    return failed


def memory(case):
    """A control group whose memory ends: the system kills."""
    group = pathlib.Path("/sys/fs/cgroup/memory/negscale-campaign")
    try:
        group.mkdir(exist_ok=True)
        (group / "memory.limit_in_bytes").write_text(str(case.chance.randint(8, 40) << 20))
    except OSError as problem:
        raise Skipped(f"no control group of memory here: {problem}") from None
    case.begin()
    try:
        join = lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
        failed = case.refused(["memory"], (2, ABORTED, -signal.SIGKILL), preexec_fn=join)
    finally:
        (group / "memory.limit_in_bytes").write_text("-1")
    case.finish()
    return failed


def clock(case):
    """Days forward and back between any two looks at the clock, with kills between."""
    env = environment(LD_PRELOAD=power.build(case.options.work), CAMPAIGN_CLOCK=case.chance.randint(1, 10**6))
    kills.trial(case.job, case.here, case.chance, case.seconds, 2, env)
    same.compare(case.here / case.job.run_folder, case.place / case.job.run_folder)
    return True


def two_processes(case):
    """At once in one folder: one works, the other is told so, nothing is mixed."""
    for step in case.job.steps:
        both = [start(step, case.here, said=case.here.parent / f"both-{at}.said") for at in range(2)]
        codes = [child.wait(PATIENCE) for child in both]
        said = [(case.here.parent / f"both-{at}.said").read_text(errors="replace") for at in range(2)]
        for code, text in zip(codes, said):
            check_words(step, code, text)
            if code != 0 and "another process" not in text:
                raise Finding(f"{' '.join(step)}: the second process ends with {code}: {text[-600:]}")
        if all(codes):
            raise Finding(f"{' '.join(step)}: both refuse: {said}")
    case.finish()
    return True


def two_hosts(case):
    """Two machines that pull runs from one plan; one of them dies, the other takes over what it had."""
    plan = run(["sweep", "plan", f"{case.inputs}/sweep.toml", "--out", "run"], case.here)[1].strip().splitlines()[-1]
    workers = []
    for host in ["one", "two"]:
        script = f"hostname {host}; exec \"$@\""
        words = ["unshare", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script, "sh", str(PROGRAM)]
        said = (case.here.parent / f"{host}.said").open("wb")
        # The plan's own folder is where paths begin.
        words += ["sweep", "work", plan, "--jobs", "2", "--lease", "2"]
        workers.append(subprocess.Popen(words, cwd=case.here, env=environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True))
    time.sleep(case.chance.uniform(0.2, 1.0) * case.seconds[0])
    died = kill(workers[0])
    code = workers[1].wait(PATIENCE)
    text = (case.here.parent / "two.said").read_text(errors="replace")
    check_words(["sweep", "work"], code, text)
    if code != 0:
        raise Finding(f"the other host ends with {code}: {text[-600:]}")
    shutil.rmtree(next((case.here / "run").glob("sweep-*")))
    case.finish()
    return died


class Skipped(Exception):
    """It cannot be tried here."""


CASES = {
    "read-only file system": (read_only, ["train rolr", "audit", "audit shards", "sweep"]),
    "no permission": (no_permission, ["train rolr", "audit"]),
    "files that may not grow": (large_files, ["train rolr", "train pictures", "audit", "audit shards", "sweep"]),
    "few file handles": (few_handles, ["train rolr", "audit", "audit shards"]),
    "ulimit -v": (addresses, ["train rolr", "train pictures", "audit", "audit shards"]),
    "memory of a control group": (memory, ["train rolr", "train pictures", "audit"]),
    "clock that jumps": (clock, ["train rolr", "audit shards", "sweep"]),
    "two processes, one folder": (two_processes, ["train rolr", "audit", "audit shards", "sweep"]),
    "two hosts, one dies": (two_hosts, ["sweep"]),
}


def run_campaign(options):
    if os.geteuid() != 0:
        raise SystemExit("limits: most of them can only be set as root")
    log, inputs = Log(options.work, "limits", options.seed), options.work / "inputs"
    jobs.prepare(inputs)
    all_jobs = jobs.jobs(inputs)
    for name, (work, which) in CASES.items():
        if options.only and name not in options.only:
            continue
        for job in which:
            key = f"{name}: {job}"
            while len(log.of(key)) < options.count:
                number, chance = log.chance(key)
                facts = {}
                try:
                    facts["refused"] = int(work(Case(options, inputs, chance, all_jobs[job])))
                except Skipped as why:
                    print(f"{key}: left out: {why}")
                    break
                except Finding as problem:
                    facts["finding"] = str(problem)
                    print(f"FINDING {key} {number}: {problem}", flush=True)
                log.add(key, trial=number, **facts)
                print(f"{key} {number}: {'as it should be' if 'finding' not in facts else 'see above'}", flush=True)
    print(log.table(["refused"]))
    return any("finding" in line for line in log.lines)
