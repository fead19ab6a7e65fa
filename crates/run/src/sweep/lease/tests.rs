//! Leases: taken by one, kept by a beat, taken over when it stands still.

use super::*;
use std::thread::sleep;

const SHORT: Duration = Duration::from_millis(200);

fn leases(below: &Path, round: &str) -> Leases {
    // As on another machine: that its process lives does not show.
    let me = Holder { system: Some("another boot".into()), ..Holder::this(round, None) };
    Leases::new(below, SHORT, me)
}

fn ours(claim: Claim) -> Lease {
    match claim {
        Claim::Ours(lease) => lease,
        _ => panic!("the run has somebody"),
    }
}

fn files(below: &Path) -> usize {
    fs::read_dir(below.join(FOLDER)).map_or(0, Iterator::count)
}

#[test]
fn one_of_many_gets_a_run() {
    let here = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let name = format!("run-{round}");
        let count = std::thread::scope(|scope| {
            let claim = || matches!(leases(here.path(), "a").claim(&name).unwrap(), Claim::Ours(_));
            let all: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
            all.into_iter().map(|one| usize::from(one.join().unwrap())).sum::<usize>()
        });
        assert_eq!(count, 1);
    }
}

#[test]
fn a_beat_keeps_a_run_and_silence_loses_it() {
    let here = tempfile::tempdir().unwrap();
    let (a, b) = (leases(here.path(), "a"), leases(here.path(), "a"));
    let mut lease = ours(a.claim("run").unwrap());
    let mut seen_alive = false;
    for _ in 0..10 {
        sleep(SHORT / 4);
        assert!(lease.beat());
        match b.claim("run").unwrap() {
            Claim::Theirs { is_alive, .. } => seen_alive |= is_alive,
            _ => panic!("a living holder lost its run"),
        }
    }
    assert!(seen_alive, "that it beats is seen");
    // It sleeps; somebody else takes over, and it finds out.
    let taken = (0..100).find_map(|_| {
        sleep(SHORT / 8);
        if let Claim::Ours(lease) = b.claim("run").unwrap() { Some(lease) } else { None }
    });
    let mut taken = taken.unwrap();
    assert!(!lease.beat(), "it lets go");
    sleep(SHORT / 4);
    assert!(taken.beat());
    taken.end();
    assert_eq!(files(here.path()), 0, "nothing is left of a run that is done");
}

#[test]
fn a_process_of_this_machine_that_is_gone_keeps_nothing() {
    let here = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let gone = Holder { process: child.id(), since: started(child.id()), ..Holder::this("a", None) };
    assert!(gone.since.is_some() && !gone.is_gone());
    drop(ours(Leases::new(here.path(), LEASE, gone.clone()).claim("run").unwrap()));
    let me = Leases::new(here.path(), LEASE, Holder::this("a", None));
    assert!(matches!(me.claim("run").unwrap(), Claim::Theirs { is_alive: false, .. }));
    assert_eq!(Leases::holder(here.path(), "run").unwrap().process, child.id());
    child.kill().unwrap();
    // Also before it is waited for.
    while !gone.is_gone() {
        sleep(Duration::from_millis(5));
    }
    child.wait().unwrap();
    assert!(Leases::holder(here.path(), "run").is_none());
    ours(me.claim("run").unwrap());
}

#[test]
fn what_failed_is_tried_again_in_another_round_and_what_was_left_in_this_one() {
    let here = tempfile::tempdir().unwrap();
    let (a, again) = (leases(here.path(), "a"), leases(here.path(), "b"));
    ours(a.claim("run").unwrap()).release(Release::Left).unwrap();
    ours(a.claim("run").unwrap()).release(Release::Failed).unwrap();
    assert!(matches!(leases(here.path(), "a").claim("run").unwrap(), Claim::Failed));
    ours(again.claim("run").unwrap());
}

#[test]
fn a_run_whose_processes_vanish_is_not_tried_for_ever() {
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join(FOLDER)).unwrap();
    let vanished = Holder { since: Some(1), ..Holder::this("a", None) };
    for number in 1..=DEATHS {
        let me = Leases::new(here.path(), LEASE, vanished.clone());
        drop(ours(me.claim("run").unwrap()));
        assert!(path(&here.path().join(FOLDER), "run", number).exists());
    }
    let same = Leases::new(here.path(), LEASE, Holder::this("a", None));
    assert!(matches!(same.claim("run").unwrap(), Claim::Deadly(DEATHS)));
    ours(Leases::new(here.path(), LEASE, Holder::this("b", None)).claim("run").unwrap());
}

#[test]
fn a_torn_lease_is_judged_by_its_age() {
    let here = tempfile::tempdir().unwrap();
    let all = leases(here.path(), "a");
    fs::create_dir(here.path().join(FOLDER)).unwrap();
    fs::write(path(&here.path().join(FOLDER), "run", 1), "{\"host\": ").unwrap();
    assert!(matches!(all.claim("run").unwrap(), Claim::Theirs { holder: None, is_alive: false }));
    sleep(SHORT);
    ours(all.claim("run").unwrap());
}
