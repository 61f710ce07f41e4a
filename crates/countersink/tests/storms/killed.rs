//! What a killed process leaves in a file: what it had counted, to within the operation in which it was
//! killed.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use countersink::reader::{Life, Pruned, Region, Snapshot, State, files_in, prune};
use countersink::region::{Place, status};
use countersink::{Counter, Gauge, Histogram, Span};

use crate::common::child::alone_with;
use crate::common::cpus::{pause, wait_until};
use crate::common::fork::{Child, fork};
use crate::common::log::{self, Line, assert_in_bracket, is_in_bracket};
use crate::common::random::Random;
use crate::common::read;

const KILLS: u64 = 200;
const SEED: u64 = 0x0b17_0005;

static ADDS: Counter = Counter::new("killed_adds");
static TAKEN: Counter = Counter::new("killed_taken");
static LEVEL: Gauge = Gauge::new("killed_level");
static EVENTS: Span = Span::new("killed_events");
/// What is added to it comes in batches, so that a kill loses what it should not.
static LATE: Counter = Counter::new("killed_late");
static VALUES: Histogram = Histogram::new("killed_values");

/// Words of the log, each written by one of the two threads after what it tells.
const PLACED: usize = 0;
const ADDED: usize = 1;
const UP: usize = 2;
const DOWN: usize = 3;
const EVENT: usize = 4;
const VALUE: usize = 5;
/// What was added since the last take that is known of; and 1 while one may be under way.
const SINCE: usize = 6;
const TAKING: usize = 7;
const REGISTERED: usize = 8;
const BATCHED: usize = 9;

/// Counts, with all metrics of its own, until it is killed.
fn count(log: &Line) {
    loop {
        ADDS.inc();
        log.add(ADDED, 1);
        LEVEL.inc();
        log.add(UP, 1);
        LEVEL.dec();
        log.add(DOWN, 1);
        EVENTS.start().stop_bytes(10);
        log.add(EVENT, 1);
        VALUES.record(100);
        log.add(VALUE, 1);
        TAKEN.inc();
        log.add(SINCE, 1);
        log.add(BATCHED, 1);
        if log.get(BATCHED).is_multiple_of(100) {
            LATE.add(100);
        }
        if log.get(ADDED).is_multiple_of(5) {
            log.set(TAKING, 1);
            TAKEN.take();
            log.set(SINCE, 0);
            log.set(TAKING, 0);
        }
    }
}

/// Registers one metric after the other, and lets every other one go.
fn register(log: &Line) {
    const NAMES: [&str; 4] = ["killed_a", "killed_b", "killed_c", "killed_d"];
    let mut number = 0_usize;
    loop {
        let counter = Counter::new(NAMES[number % NAMES.len()]);
        counter.add(1);
        let span = Span::new("killed_passing").with_histogram(2);
        span.start().stop();
        span.take();
        let lasting = Counter::new(format!("killed_lasting_{number}").leak());
        lasting.add(3);
        log.add(REGISTERED, 1);
        core::mem::forget(lasting);
        number += 1;
        if number > 1000 {
            return;
        }
    }
}

/// What is killed.
fn work(log: &'static Line) {
    let second = std::thread::spawn(|| {
        ADDS.add(0);
        assert_eq!(status().place, Place::File, "{}", status().hindrance);
        log.set(PLACED, 1);
        register(log);
    });
    count(log);
    second.join().expect("killed");
}

/// Waits for something of chance: a while that is short in computing or in counting.
fn wait(log: &Line, random: &mut Random) {
    if random.below(4) == 0 {
        // While the region is made, perhaps.
        for _ in 0..random.below(20) {
            pause();
        }
        return;
    }
    let word = [ADDED, REGISTERED][random.below(2) as usize];
    let until = random.below(if word == ADDED { 10_000 } else { 100 });
    while log.get(word) < until {
        pause();
    }
}

/// Compares all that is there with the log; whether the batches, too, are as they should be.
fn check(snapshot: &Snapshot, log: &Line) -> bool {
    // A metric that is not there counted nothing.
    let is_there = |name: &str| read::find(snapshot, name).is_some();
    let counter = |name: &str| match is_there(name) {
        true => read::counter(snapshot, name),
        false => 0,
    };
    assert_in_bracket("adds", counter("killed_adds"), log.get(ADDED), 1);
    if is_there("killed_level") {
        let level = read::gauge(snapshot, "killed_level");
        let logged = log.get(UP) as i64 - log.get(DOWN) as i64;
        assert!(
            (logged - 1..=logged + 1).contains(&level),
            "{level} {logged}"
        );
        assert!((0..=1).contains(&level), "{level}");
    }
    if is_there("killed_events") {
        let span = read::span(snapshot, "killed_events");
        assert_in_bracket("events", span.events, log.get(EVENT), 1);
        assert_in_bracket("byte events", span.byte_events, log.get(EVENT), 1);
        assert!(span.byte_events <= span.events);
        assert_eq!(span.bytes, 10 * span.byte_events, "torn");
        if let Some(times) = span.times {
            assert!(times.max * span.events >= span.time && times.min <= times.max);
        }
        assert!(span.times.is_some() || log.get(EVENT) == 0);
    }
    if is_there("killed_values") {
        let countersink::reader::Value::Histogram(values) =
            &read::metric(snapshot, "killed_values").value
        else {
            panic!("a histogram");
        };
        assert_in_bracket("values", values.count(), log.get(VALUE), 1);
    }
    let taken = counter("killed_taken");
    let since = log.get(SINCE);
    let in_take = log.get(TAKING) == 1 && taken == 0;
    assert!(
        in_take || (since..=since + 1).contains(&taken),
        "{taken}, {since} since the take"
    );
    for number in 0..log.get(REGISTERED) {
        assert_eq!(counter(&format!("killed_lasting_{number}")), 3);
    }
    is_in_bracket(counter("killed_late"), log.get(BATCHED), 1)
}

/// The regions in the directory. The two threads may have made one each at the same time, of which one
/// is in use; the other is removed at once, unless its thread is killed before.
fn regions(directory: &Path) -> Vec<Region> {
    let files = files_in(directory).expect("a directory of ours");
    let region = |file: countersink::reader::RegionFile| file.region.expect("a whole region");
    files.into_iter().map(region).collect()
}

/// What all regions hold; only one holds anything.
fn contents(regions: &[Region]) -> Option<Snapshot> {
    let mut used = regions
        .iter()
        .map(read::snapshot_of)
        .filter(|snapshot| !snapshot.metrics.is_empty());
    let contents = used.next();
    assert!(used.next().is_none(), "two regions in use");
    contents
}

/// A snapshot of a living process: each value between what was logged before and after it.
fn check_alive(regions: &[Region], log: &Line) {
    for region in regions {
        assert_eq!(region.info().creator(), Life::Alive);
    }
    assert!(regions.iter().any(|region| region.state() == State::Alive));
    let before = log.get(ADDED);
    let snapshot = contents(regions).expect("it counts there");
    let after = log.get(ADDED) + 1;
    let adds = read::counter(&snapshot, "killed_adds");
    assert!((before..=after).contains(&adds), "{before} {adds} {after}");
}

/// Kills a child at some moment; if it left a region with something in it, whether batches were right.
fn kill_one(child: Child, directory: &Path, log: &Line, random: &mut Random) -> Option<bool> {
    wait(log, random);
    if log.get(ADDED) > 0 && log.get(PLACED) > 0 && random.below(4) == 0 {
        check_alive(&regions(directory), log);
    }
    child.kill();
    let regions = regions(directory);
    for region in &regions {
        assert_eq!(region.state(), State::Dead);
        assert_eq!(region.info().creator(), Life::Dead);
    }
    let contents = contents(&regions);
    let right = contents.map(|snapshot| check(&snapshot, log));
    if right.is_none() {
        assert_eq!(log.get(ADDED) + log.get(REGISTERED), 0, "nothing is there");
    }
    let pruned = prune(directory).expect("a directory of ours");
    let removed = pruned
        .iter()
        .filter(|what| matches!(what, Pruned::Removed(path) if path.extension() == Some(OsStr::new("countersink"))));
    assert_eq!(removed.count(), regions.len(), "{pruned:?}");
    assert!(files_in(directory).expect("as before").is_empty());
    right
}

fn kill_all(directory: &Path) {
    let mut random = Random(SEED);
    let (mut found, mut wrong, mut counted) = (0, 0, 0);
    let lines = log::shared(KILLS as usize);
    for log in lines {
        let child = fork(|| work(log));
        if let Some(right) = kill_one(child, directory, log, &mut random) {
            found += 1;
            wrong += u64::from(!right);
        }
        counted += log.get(ADDED);
        remove_half_made(directory);
    }
    println!(
        "seed {SEED:#x}: {found} files of {KILLS} killed processes, {counted} adds; {wrong} lost batches"
    );
    assert!(found > KILLS / 4 && counted > 0);
    assert!(wrong > 0, "not a storm");
}

/// As prune() does after a minute, so that they do not fill the disk meanwhile.
fn remove_half_made(directory: &Path) {
    for entry in std::fs::read_dir(directory).expect("the directory") {
        let path = entry.expect("an entry").path();
        if path.extension() == Some(OsStr::new("tmp")) {
            std::fs::remove_file(path).expect("a file of ours");
        }
    }
}

/// A child of the killed process still has the file, which says so.
fn with_a_child(directory: &Path) {
    let [log] = log::shared(1) else {
        panic!("one line");
    };
    let process = fork(|| {
        ADDS.add(3);
        let child = fork(|| {
            // SAFETY: no preconditions; it outlives its parent.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
            log.set(PLACED, 1);
            wait_until(|| log.get(TAKING) == 1);
            ADDS.add(4);
        });
        child.wait_well();
    });
    wait_until(|| log.get(PLACED) == 1);
    process.kill();
    let regions = regions(directory);
    let [region] = &regions[..] else {
        panic!("{regions:?}");
    };
    assert_eq!(region.info().creator(), Life::Dead);
    assert_eq!(region.state(), State::Alive);
    let pruned = prune(directory).expect("a directory of ours");
    assert!(matches!(pruned[..], [Pruned::Alive(_)]), "{pruned:?}");
    log.set(TAKING, 1);
    wait_until(|| region.state() == State::Dead);
    let snapshot = read::snapshot_of(region);
    assert_eq!(read::counter(&snapshot, "killed_adds"), 7);
    let pruned = prune(directory).expect("a directory of ours");
    assert!(matches!(pruned[..], [Pruned::Removed(_)]), "{pruned:?}");
}

/// Runs a body in a process of its own that has been told of a directory for its region, which is gone
/// when it has ended.
fn in_directory(test: &str, body: fn(&Path)) {
    let mut builder = tempfile::Builder::new();
    builder.permissions(std::fs::Permissions::from_mode(0o700));
    let directory = builder
        .tempdir_in("/dev/shm")
        .or_else(|_| builder.tempdir());
    let directory = directory.expect("a directory");
    let path = match std::env::var_os("COUNTERSINK_DIR") {
        Some(path) if std::env::var_os(crate::common::child::MARK).is_some() => path,
        _ => directory.path().as_os_str().to_owned(),
    };
    alone_with(test, &[("COUNTERSINK_DIR", &path)], || {
        body(Path::new(&path))
    });
}

#[test]
fn a_file_tells_what_a_killed_process_had_counted() {
    in_directory(
        "killed::a_file_tells_what_a_killed_process_had_counted",
        kill_all,
    );
}

#[test]
fn a_file_lives_as_long_as_a_child_has_it() {
    in_directory(
        "killed::a_file_lives_as_long_as_a_child_has_it",
        with_a_child,
    );
}
