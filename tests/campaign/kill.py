"""SIGKILL at random moments, half of them aimed at files being written; then resumed, and at the end compared to the bit."""
import signal
import time

import jobs
import review
import same
import watch
from common import Finding, Log, check_words, empty, environment, kill, run, start

# Kills of one trial, after which it may run to its end.
KILLS = 6
KINDS = [watch.CREATE, watch.MODIFY, watch.MOVED_TO]


def whole(job, place, env):
    """The uninterrupted run, made once; and how long each step takes."""
    marker = place / "seconds"
    if not marker.exists():
        empty(place)
        seconds = []
        for words in job.steps:
            begun = time.monotonic()
            run(words, place, env)
            seconds.append(time.monotonic() - begun)
        marker.write_text(" ".join(map(str, seconds)))
    return [float(word) for word in marker.read_text().split()]


def strike(job, child, here, chance, seconds):
    """Waits for the moment, and kills. Whether it was killed, and whether in the middle of a write."""
    hit = False
    if chance.random() < 0.5:
        hit = watch.wait_for_part(here, child, chance.choice(KINDS), chance.randint(1, 8), job.is_aim, 60)
        time.sleep(chance.random() * 0.003)
    else:
        time.sleep(chance.uniform(0, seconds))
    # A sweep may be killed alone; its runs notice it and end by themselves.
    kill(child, job.name != "sweep" or chance.random() < 0.5)
    killed = child.returncode == -signal.SIGKILL
    return killed, killed and hit


def trial(job, here, chance, seconds, kills, env, cut=None):
    """From nothing to the end, killed on the way. How often, and how often in the middle of a write."""
    struck, aimed, step = 0, 0, 0
    while step < len(job.steps) and struck < kills:
        child = start(job.steps[step], here, env)
        killed, hit = strike(job, child, here, chance, seconds[step])
        check_words(job.steps[step], child.returncode, (here / ".said").read_text(errors="replace"))
        if killed:
            struck, aimed = struck + 1, aimed + hit
            if cut:
                kill(child)
                cut()
            same.check_files(here)
        elif child.returncode == 0:
            step += 1
        elif "another process" in (here / ".said").read_text():
            time.sleep(0.3)
        else:
            raise Finding(f"{' '.join(job.steps[step])}: exit code {child.returncode}: {(here / '.said').read_text()[-800:]}")
    job.settle(here, env)
    return struck, aimed


def all_jobs(inputs, store):
    found = jobs.jobs(inputs)
    get = jobs.fetch(store)
    if get is None:
        print("data get: the archive cannot be fetched with npm here, so that job is left out")
    else:
        found[get.name] = get
    return found


def run_campaign(options):
    log, inputs = Log(options.work, "kill", options.seed), options.work / "inputs"
    jobs.prepare(inputs)
    todo = all_jobs(inputs, options.work)
    names = [name for name in [*todo, "review"] if not options.only or name in options.only]
    done = {name: sum(line["kills"] for line in log.of(name)) for name in names}
    while sum(done.values()) < options.count:
        # The one that was killed least comes next.
        name = min(names, key=done.get)
        number, chance = log.chance(name)
        here = empty(options.work / "trial")
        facts = {"kills": 0, "aimed": 0}
        try:
            if name == "review":
                facts["kills"] = review_trial(options, inputs, here, chance)
            else:
                job = todo[name]
                env = environment(PATH=getattr(job, "path", None) or environment()["PATH"])
                place = options.work / "whole" / name.replace(" ", "-")
                seconds = whole(job, place, env)
                facts["kills"], facts["aimed"] = trial(job, here, chance, seconds, KILLS, env)
                same.compare(here / "run", place / "run")
        except Finding as problem:
            facts["finding"] = str(problem)
            facts["kills"] = max(facts["kills"], 1)
            kept = options.work / "findings" / f"kill-{options.seed}-{name.replace(' ', '-')}-{number}"
            empty(kept).rmdir()
            here.rename(kept)
            print(f"FINDING {name} {number}: {problem}\n  kept in {kept}", flush=True)
        log.add(name, trial=number, **facts)
        # A trial whose kills all came too late is a trial, too, but must not be tried for ever.
        done[name] += max(facts["kills"], 0.25)
        print(f"{name} {number}: {facts['kills']} kills, {facts['aimed']} in the middle of a write; {sum(done.values()):.0f} of {options.count}", flush=True)
    print(log.table(["kills", "aimed"]))
    return any("finding" in line for line in log.lines)


def review_trial(options, inputs, here, chance):
    place = options.work / "whole" / "review"
    if not (place / "run/review/corrected.csv").exists():
        empty(place)
        review.prepare(place, inputs)
        review.finish(place, [])
    review.prepare(here, inputs)
    struck = review.trial(here, chance, KILLS)
    same.compare(here / "run", place / "run")
    return struck
