//! Fork shares a region, exec drops it, `unshare()` leaves it.
#![allow(unsafe_code)]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use countersink::reader::{self, Extremes, Region, Value};
use countersink::region::{Place, status, unshare};
use countersink::{Counter, Family, Gauge, Span};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::child::{Act, Child, argument, tell};
use crate::work::{COUNTER, Crew, GAUGE, HISTOGRAM, SPAN, TOTAL, check, check_times, count};

pub(crate) const ACTS: &[Act] = &[
    ("fork::shares", shares),
    ("fork::execs", execs),
    ("fork::look", look),
    ("fork::leaves", leaves),
    ("fork::leaves_private", leaves_private),
    ("fork::leaves_with_threads", leaves_with_threads),
    ("fork::cannot_leave", cannot_leave),
    ("fork::leaves_nothing", leaves_nothing),
];

static FAMILY: Family<Counter> = Family::new(Counter::new("odd_family"), ["member"]);

/// Runs something in a forked child, which has to end well; its number.
fn forked(body: impl FnOnce()) -> i32 {
    // SAFETY: no other thread is doing anything that the child waits for.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: no preconditions.
        unsafe { libc::_exit(i32::from(result.is_err())) };
    }
    child
}

fn wait(child: i32) {
    let mut status = 0;
    // SAFETY: our child, and an int.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
}

fn shares() {
    // Four threads have worked, and then four children.
    Crew::hire().work();
    check();
    let children = [(); 4].map(|()| forked(count));
    children.into_iter().for_each(wait);
    check_times(2);
}

#[test]
fn children_count_with_their_parent() {
    let outcome = Child::new("fork::shares").run();
    assert_eq!(
        (outcome.value("place"), outcome.number("sum")),
        ("memfd", 2 * TOTAL)
    );
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = temporary.path().join("regions");
    let outcome = Child::new("fork::shares")
        .env("COUNTERSINK_DIR", directory)
        .run();
    assert_eq!(
        (outcome.value("place"), outcome.number("sum")),
        ("file", 2 * TOTAL)
    );
}

fn execs() {
    Crew::hire().work();
    check();
    let outcome = Child::new("fork::look").run();
    tell("descriptors", outcome.value("descriptors"));
    tell("mappings", outcome.value("mappings"));
}

/// What a program has of a region before it makes its own.
fn look() {
    let entries = fs::read_dir("/proc/self/fd").expect("/proc").flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let found = targets.filter(|target| target.to_string_lossy().contains("countersink ("));
    tell("descriptors", found.count());
    let maps = fs::read_to_string("/proc/self/maps").expect("/proc");
    tell(
        "mappings",
        maps.lines()
            .filter(|line| line.contains("memfd:countersink"))
            .count(),
    );
}

#[test]
fn a_new_program_has_nothing_of_the_region() {
    let outcome = Child::new("fork::execs").run();
    assert_eq!(
        (outcome.number("descriptors"), outcome.number("mappings")),
        (0, 0)
    );
}

/// The regions of a process, by what identifies them.
fn regions(pid: u32) -> Vec<Option<(u64, u64)>> {
    let regions = Region::of_process(pid).expect("a region");
    regions.iter().map(Region::id).collect()
}

fn value(region: &Region, name: &str) -> Option<Value> {
    let snapshot = region.snapshot().expect("a snapshot");
    assert_eq!(snapshot.problems, Vec::<String>::new());
    let metric = snapshot
        .metrics
        .into_iter()
        .find(|metric| metric.name == name);
    metric.map(|metric| metric.value)
}

/// A child leaves; all begins at nothing there, and stays what it was here.
fn leaves() {
    static LATER: Counter = Counter::new("odd_later");
    Crew::hire().work();
    GAUGE.add(7);
    GAUGE.sub(7);
    FAMILY.with(["a"]).add(5);
    let parent = std::process::id();
    let shared = regions(parent);
    let child = forked(|| {
        assert_eq!((COUNTER.sum(), FAMILY.with(["a"]).sum()), (TOTAL, 5));
        assert_eq!(regions(std::process::id()), shared);
        unshare().expect("there is memory");

        assert_eq!((COUNTER.sum(), FAMILY.with(["a"]).sum()), (0, 0));
        assert_eq!((GAUGE.value(), GAUGE.ups_and_downs()), (0, (0, 0)));
        let span = SPAN.read();
        assert_eq!((span.events, span.time, span.times), (0, 0, None));
        assert_eq!((span.bytes, span.byte_extremes), (0, None));
        assert_eq!(HISTOGRAM.read().count(), 0);

        COUNTER.add(3);
        GAUGE.dec();
        SPAN.start().stop_bytes(50);
        HISTOGRAM.record(9);
        FAMILY.with(["a"]).inc();
        FAMILY.with(["b"]).inc();
        LATER.inc();
        assert_eq!(COUNTER.sum(), 3);
        assert_eq!(GAUGE.value(), -1);
        let span = SPAN.read();
        assert_eq!((span.events, span.bytes), (1, 50));
        assert_eq!(span.byte_extremes, Some(Extremes { min: 50, max: 50 }));
        assert_eq!(HISTOGRAM.read().count(), 1);
        assert_eq!(status().place, Place::Memfd);

        let own = regions(std::process::id());
        assert_eq!(own.len(), 1, "{own:?}");
        assert_ne!(own, shared);
        let region = Region::of_process(std::process::id())
            .expect("a region")
            .remove(0);
        assert_eq!(region.info().pid, std::process::id());
        assert_eq!(value(&region, "odd_counter"), Some(Value::Counter(3)));
        assert_eq!(value(&region, "odd_later"), Some(Value::Counter(1)));
        let sightings = reader::find().expect("processes").regions;
        for sighting in sightings {
            let with = |pid| sighting.pids.contains(&pid);
            assert!(!(with(parent) && with(std::process::id())), "{sighting:?}");
        }
        // A second time, to nothing again.
        unshare().expect("there is memory");
        assert_eq!(COUNTER.sum(), 0);
        assert_eq!(regions(std::process::id()).len(), 1);
    });
    wait(child);
    assert_eq!(regions(parent), shared);
    let region = Region::of_process(parent).expect("a region").remove(0);
    assert_eq!(value(&region, "odd_counter"), Some(Value::Counter(TOTAL)));
    assert_eq!(value(&region, "odd_later"), None);
    assert_eq!(FAMILY.with(["a"]).sum(), 5);
    GAUGE.set(TOTAL as i64 / 6);
    assert_eq!(
        SPAN.read().byte_extremes,
        Some(Extremes { min: 1, max: 100 })
    );
    assert_eq!(COUNTER.sum(), TOTAL);
}

#[test]
fn a_child_leaves_the_region() {
    Child::new("fork::leaves").run();
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = temporary.path().join("regions");
    Child::new("fork::leaves")
        .env("COUNTERSINK_DIR", &directory)
        .run();
    let files = reader::files_in(&directory).expect("trusted");
    assert_eq!(files.len(), 1);
    let region = files[0].region.as_ref().expect("a region");
    assert_eq!(value(region, "odd_counter"), Some(Value::Counter(TOTAL)));
}

/// The region is private, or some of the metrics are.
fn leaves_private() {
    static REFUSED: Counter = Counter::new("not a name");
    static SPAN_REFUSED: Span = Span::new("no name");
    if argument() == "private" {
        lower_file_size(0);
    }
    Crew::hire().work();
    REFUSED.add(8);
    SPAN_REFUSED.start().stop_bytes(8);
    let child = forked(|| {
        // As far as it is allowed.
        // SAFETY: no preconditions.
        unsafe { libc::mlockall(libc::MCL_CURRENT) };
        unshare().expect("nothing hinders");
        assert_eq!((COUNTER.sum(), REFUSED.sum(), GAUGE.value()), (0, 0, 0));
        assert_eq!((SPAN.read().events, SPAN_REFUSED.read().events), (0, 0));
        for span in [&SPAN, &SPAN_REFUSED] {
            span.start().stop_bytes(50);
            let extremes = span.read().byte_extremes;
            assert_eq!(extremes, Some(Extremes { min: 50, max: 50 }));
        }
        REFUSED.inc();
        assert_eq!(REFUSED.sum(), 1);
    });
    wait(child);
    check();
    assert_eq!((REFUSED.sum(), SPAN_REFUSED.read().bytes), (8, 8));
}

#[test]
fn private_memory_begins_anew() {
    let outcome = Child::new("fork::leaves_private").run();
    assert_eq!(outcome.value("place"), "memfd");
    let outcome = Child::new("fork::leaves_private").argument("private").run();
    assert_eq!(outcome.value("place"), "private memory");
}

/// Threads count while the region is exchanged: each count is in the one or in the other.
fn leaves_with_threads() {
    static LEVEL: Gauge = Gauge::new("odd_level");
    COUNTER.inc();
    LEVEL.inc();
    let mut pipe = [0; 2];
    // SAFETY: two ints.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    for _ in 0..20 {
        let before = (COUNTER.sum(), LEVEL.ups_and_downs());
        let child = forked(|| {
            let over = AtomicBool::new(false);
            let done = std::thread::scope(|scope| {
                let work = || {
                    let mut rounds = 0;
                    while !over.load(SeqCst) {
                        COUNTER.inc();
                        LEVEL.inc();
                        LEVEL.dec();
                        rounds += 1;
                    }
                    rounds
                };
                let threads = [(); 2].map(|()| scope.spawn(work));
                while COUNTER.sum() < before.0 + 1000 {
                    std::hint::spin_loop();
                }
                unshare().expect("there is memory");
                while COUNTER.sum() < 1000 {
                    std::hint::spin_loop();
                }
                over.store(true, SeqCst);
                threads.map(|thread| thread.join().expect("counting does not panic"))
            });
            let (ups, downs) = LEVEL.ups_and_downs();
            let own = [done.iter().sum::<u64>(), COUNTER.sum(), ups, downs];
            // SAFETY: plain numbers, and a pipe that has room for them.
            let written = unsafe { libc::write(pipe[1], own.as_ptr().cast(), size_of_val(&own)) };
            assert_eq!(written as usize, size_of_val(&own));
        });
        wait(child);
        let mut own = [0_u64; 4];
        // SAFETY: as above.
        let read = unsafe { libc::read(pipe[0], own.as_mut_ptr().cast(), size_of_val(&own)) };
        assert_eq!(read as usize, size_of_val(&own));
        let [done, counted, ups, downs] = own;
        assert!(counted >= 1000 && counted < done, "{own:?}");
        assert_eq!(COUNTER.sum() - before.0 + counted, done);
        let (all_ups, all_downs) = LEVEL.ups_and_downs();
        assert_eq!(all_ups - before.1.0 + ups, done);
        assert_eq!(all_downs - before.1.1 + downs, done);
    }
}

#[test]
fn threads_count_while_a_child_leaves() {
    Child::new("fork::leaves_with_threads").run();
}

fn lower_file_size(bytes: u64) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit {
        current: Some(bytes),
        maximum,
    };
    setrlimit(Resource::Fsize, limit).expect("limits can be lowered");
}

/// Files may not grow any more; that must not kill, and all is as before.
fn cannot_leave() {
    Crew::hire().work();
    let child = forked(|| {
        lower_file_size(4096);
        let error = unshare().expect_err("there is no room");
        assert!(error.to_string().contains("resource limit"), "{error}");
        for _ in 0..4 {
            count();
        }
    });
    wait(child);
    check_times(2);
}

#[test]
fn a_region_that_cannot_be_left_is_kept() {
    Child::new("fork::cannot_leave").run();
}

/// There is no region yet; then there is one, made in the child.
fn leaves_nothing() {
    let child = forked(|| {
        unshare().expect("nothing to do");
        COUNTER.inc();
        assert_eq!(COUNTER.sum(), 1);
    });
    wait(child);
    assert_eq!(COUNTER.sum(), 0);
}

#[test]
fn without_a_region_there_is_nothing_to_leave() {
    Child::new("fork::leaves_nothing").run();
}
