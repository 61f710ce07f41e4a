//! Others who share a region, and other parts of the program.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use countersink::reader::{Region, State, Value};
use countersink::{Counter, Family, Gauge, Histogram, Span, region};
use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate};
use rustix::io::Errno;

use crate::child::{Act, Child, argument, listen, tell};
use crate::forge::{Header, memfd, path};
use crate::work::{Crew, TOTAL, check, check_times};

pub(crate) const ACTS: &[Act] = &[
    ("neighbours::register", register),
    ("neighbours::count", count),
    ("neighbours::daemon", daemon),
];

/// The number of the region's descriptor.
fn descriptor() -> i32 {
    let entries = fs::read_dir("/proc/self/fd").expect("/proc");
    let mut numbers = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let target = fs::read_link(&path).ok()?;
        let found = target.as_os_str() == "/memfd:countersink (deleted)";
        found.then(|| path.file_name()?.to_str()?.parse().ok())?
    });
    numbers.next().expect("a region")
}

fn count() {
    Crew::hire().work();
    check();
    tell("descriptor", descriptor());
    listen();
    // Memory that was cut off would kill here.
    Crew::hire().work();
    check_times(2);
}

#[test]
fn nobody_can_make_the_memfd_shorter() {
    let mut child = Child::new("neighbours::count").start();
    let path = format!("/proc/{}/fd/{}", child.pid(), child.hear("descriptor"));
    let neighbour = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("ours");
    for size in [0, 4096, 1 << 40] {
        assert_eq!(ftruncate(&neighbour, size), Err(Errno::PERM), "{size}");
    }
    let more = FallocateFlags::empty();
    assert_eq!(fallocate(&neighbour, more, 0, 1 << 40), Err(Errno::PERM));
    for seal in [SealFlags::WRITE, SealFlags::FUTURE_WRITE] {
        assert_eq!(fcntl_add_seals(&neighbour, seal), Err(Errno::PERM));
    }
    child.say("go on");
    child.finish();
}

/// A daemon that closes all descriptors, and opens files of its own under their numbers.
fn daemon() {
    Crew::hire().work();
    let number = descriptor();
    let name = argument();
    let own = File::create_new(&name).expect("a new file");
    // SAFETY: closing what the daemon knows nothing of; the file gets the number.
    let mut reused = unsafe {
        assert_eq!(libc::close(number), 0);
        assert_eq!(libc::dup2(own.as_raw_fd(), number), number);
        File::from_raw_fd(number)
    };
    drop(own);
    reused.write_all(b"mine").expect("room");
    Crew::hire().work();
    tell("counted", "");
    listen();
    check_times(2);

    region::unshare().expect("there is memory");
    Crew::hire().work();
    check_times(1);
    reused.write_all(b", still").expect("it is open");
    assert_ne!(descriptor(), number);
    tell("unshared", "");
    listen();
    drop(reused);
    let mut text = String::new();
    File::open(&name)
        .and_then(|mut file| file.read_to_string(&mut text))
        .expect("a file");
    assert_eq!(text, "mine, still");
}

fn counted(region: &Region) -> u64 {
    let snapshot = region.snapshot().expect("a snapshot");
    let counter = snapshot
        .metrics
        .iter()
        .find(|metric| metric.name == "odd_counter");
    match counter.map(|metric| &metric.value) {
        Some(Value::Counter(count)) => *count,
        other => panic!("{other:?}, {:?}", snapshot.problems),
    }
}

#[test]
fn a_daemons_descriptors_are_its_own() {
    let temporary = tempfile::tempdir().expect("a directory");
    let file = temporary.path().join("file");
    let mut child = Child::new("neighbours::daemon")
        .argument(file.display())
        .start();
    child.hear("counted");
    // The region has no descriptor any more, and is found through its mapping.
    let regions = Region::of_process(child.pid()).expect("a region");
    assert_eq!((regions.len(), counted(&regions[0])), (1, 2 * TOTAL));
    assert!(
        regions[0].origin().contains("mapping"),
        "{}",
        regions[0].origin()
    );
    assert_eq!(regions[0].state(), State::Alive);
    child.say("go on");
    child.hear("unshared");
    let regions = Region::of_process(child.pid()).expect("a region");
    assert_eq!((regions.len(), counted(&regions[0])), (1, TOTAL));
    child.say("go on");
    child.finish();
}

/// Registers, counts and drops metrics for a while. What comes out is void; that it comes to an end is not.
fn register() {
    static FAMILY: Family<Counter> = Family::new(Counter::new("void_counter"), ["number"]);
    static GAUGES: Family<Gauge> = Family::new(Gauge::new("void_gauge"), ["number"]);
    static SPANS: Family<Span> = Family::new(Span::new("void_span"), ["number"]);
    static HISTOGRAMS: Family<Histogram> =
        Family::new(Histogram::new("void_histogram").with_sum(), ["number"]);
    tell("place", region::status().place);
    listen();
    let end = Instant::now() + Duration::from_millis(argument().parse().expect("a number"));
    let work = |thread: u64| {
        let mut rounds = 0_u64;
        while Instant::now() < end {
            let number = format!("{}", (rounds + thread) % 300);
            let number = [number.as_str()];
            FAMILY.with(number).add(rounds);
            GAUGES.with(number).sub(3);
            SPANS.with(number).start().stop_bytes(rounds);
            HISTOGRAMS.with(number).record(rounds);
            if rounds.is_multiple_of(7) {
                FAMILY.with(number).take();
                SPANS.with(number).read();
                SPANS.with(number).take();
                HISTOGRAMS.with(number).take();
                GAUGES.with(number).set(1);
                GAUGES.with(number).value();
            }
            if rounds.is_multiple_of(3) {
                FAMILY.remove(number);
                GAUGES.remove(number);
                SPANS.remove(number);
                HISTOGRAMS.remove(number);
            }
            rounds += 1;
        }
        rounds
    };
    let rounds = std::thread::scope(|scope| {
        let threads = [0, 150].map(|thread| scope.spawn(move || work(thread)));
        threads.map(|thread| thread.join().expect("nothing panics"))
    });
    tell("rounds", rounds.iter().sum::<u64>());
    region::unshare().expect("there is memory");
    FAMILY.with(["after"]).inc();
    tell("left", region::status().place);
}

/// Numbers that follow each other as if by chance.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// What a field could hold, or nearly.
    fn word(&mut self) -> u64 {
        let word = self.next();
        match self.next() % 8 {
            0 => word,
            1 => word % 4,
            2 => word % 1024,
            3 => u64::MAX - word % 4,
            4 => (word % 1024) | (((word >> 40) % 1024) << 32),
            5 => (word % 4) | (((word >> 8) % 3) << 8) | (((word >> 40) % 3) << 32),
            6 => 1 << (word % 64),
            _ => 0,
        }
    }
}

/// Writes over a region's header, index and entries until told to stop; how often.
fn scribble(words: &[AtomicU64], seed: u64, over: &AtomicBool) -> u64 {
    let mut random = Random(seed);
    let mut written = 0;
    while !over.load(Relaxed) {
        for _ in 0..100 {
            // Most of what is used is at the start of each part.
            let place = match random.next() % 4 {
                0 => random.next() as usize % 512,
                1 => random.next() as usize % words.len(),
                2 => words.len() - 1 - random.next() as usize % (1024 * 64),
                _ => 128 + random.next() as usize % 64,
            };
            words[place].store(random.word(), Relaxed);
            written += 1;
        }
    }
    written
}

#[test]
fn a_neighbour_scribbles_over_the_region() {
    for seed in [0x5eed, 0xc0de, 0xfeed_beef] {
        let header = Header {
            cpus: countersink_percpu::choice().cpus,
            entries: 1024,
            segments: 16,
            mechanism: 1,
            clock: countersink::clock::source() as u32 + 1,
        };
        let file = memfd(header.size(), &header.bytes(), true);
        let bytes = usize::try_from(header.segments_offset()).expect("small");
        // SAFETY: a new mapping of whole words, used through atomics and never removed.
        let words = unsafe {
            let none = core::ptr::null_mut();
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(none, bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0);
            assert_ne!(start, libc::MAP_FAILED);
            core::slice::from_raw_parts(start.cast::<AtomicU64>(), bytes / 8)
        };
        let own = file.try_clone().expect("a descriptor");
        let reader = Region::of_descriptor(own.into()).expect("a region");
        let child = Child::new("neighbours::register").argument(800);
        let mut child = child.env("COUNTERSINK_REGION", path(&file)).start();
        assert_eq!(child.hear("place"), "region of another process");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let scribbler = scope.spawn(|| scribble(words, seed, &over));
            let looks = scope.spawn(|| {
                let mut looks = 0;
                while !over.load(Relaxed) {
                    // Whatever it finds.
                    let _ = reader.snapshot();
                    looks += 1;
                }
                looks
            });
            child.say("go on");
            let outcome = child.end();
            over.store(true, Relaxed);
            let written = scribbler.join().expect("it only writes");
            let looks = looks.join().expect("readers do not panic");
            println!(
                "seed {seed:#x}: {written} words, {looks} looks, {}",
                outcome.last_lines()
            );
            assert!(
                outcome.status.success(),
                "{}: {}",
                outcome.status,
                outcome.text
            );
            assert_eq!(outcome.value("left"), "memfd");
        });
    }
}
