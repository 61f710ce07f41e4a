//! Resource limits, and locked memory.
#![allow(unsafe_code)]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::child::{Act, Child, Outcome, argument, is_root, tell};
use crate::work::{Crew, check, count_and_check};

pub(crate) const ACTS: &[Act] = &[
    ("limits::count", count),
    ("limits::closed", closed),
    ("limits::lock_all", lock_all),
    ("limits::lock_future", lock_future),
    ("limits::plain", plain),
    ("limits::resident", resident),
];

fn lower(resource: Resource, to: u64) {
    let maximum = getrlimit(resource).maximum;
    let limit = Rlimit {
        current: Some(to),
        maximum,
    };
    setrlimit(resource, limit).expect("limits can be lowered");
}

/// A number of `/proc/self/status`, in KiB.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with(field));
    let number = line.and_then(|line| line.split_ascii_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).expect(field)
}

/// Counts below a limit, `NAME=BYTES`; address space beyond what is used already.
fn count() {
    let crew = Crew::hire();
    let limit = argument();
    let (name, value) = limit.split_once('=').expect("a limit");
    let value = value.parse().expect("a number");
    match name {
        "fsize" => lower(Resource::Fsize, value),
        "as" => lower(Resource::As, memory("VmSize:") * 1024 + value),
        "data" => lower(Resource::Data, value),
        "nofile" => lower(Resource::Nofile, value),
        _ => panic!("{name}"),
    }
    if value == ALONE {
        // Several threads at once would need room for a region each, for a moment.
        countersink::region::status();
    }
    crew.work();
    check();
}

/// Address space in which there is room for one region.
const ALONE: u64 = 1 << 20;

fn under(limit: &str) -> Outcome {
    let outcome = Child::new("limits::count").argument(limit).run();
    let [place, hindrance, metrics] =
        ["place", "hindrance", "metrics"].map(|key| outcome.value(key));
    println!(
        "{limit}: {place}, {metrics} metrics, {hindrance:?}, {}",
        outcome.value("home")
    );
    outcome
}

/// Growing a file beyond the limit would be a deadly signal.
#[test]
fn file_size() {
    for limit in ["fsize=0", "fsize=102400"] {
        let outcome = under(limit);
        assert_eq!(outcome.value("place"), "private memory");
        assert!(
            outcome.value("hindrance").contains("resource limit"),
            "{}",
            outcome.text
        );
    }
    let outcome = under("fsize=1048576");
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("memfd", "region")
    );
    assert!(outcome.number("metrics") < 65_536);
}

#[test]
fn address_space() {
    // Room for a region that is smaller than wanted, and for none.
    let outcome = under(&format!("as={ALONE}"));
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("memfd", "region")
    );
    assert!(outcome.number("metrics") < 65_536);
    let outcome = under("as=131072");
    assert_eq!(outcome.value("place"), "nowhere");
    assert!(
        outcome.value("hindrance").contains("no memory"),
        "{}",
        outcome.text
    );
    assert!(
        outcome.value("home").contains("no memory"),
        "{}",
        outcome.text
    );
}

/// What is shared is no data, so the region is there.
#[test]
fn data() {
    let outcome = under("data=0");
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("memfd", "region")
    );
}

#[test]
fn no_descriptor_free() {
    let outcome = under("nofile=3");
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("private memory", "region")
    );
    assert!(
        outcome.value("hindrance").contains("Too many open files"),
        "{}",
        outcome.text
    );
}

/// Counts with standard input and error closed; `limited` also without a descriptor above them.
fn closed() {
    let crew = Crew::hire();
    // SAFETY: nobody uses them here; what is printed goes to standard output.
    unsafe { (libc::close(0), libc::close(2)) };
    if argument() == "limited" {
        lower(Resource::Nofile, 3);
    }
    crew.work();
    lower(Resource::Nofile, 100);
    check();
    for descriptor in [0, 2] {
        // SAFETY: as above.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
        assert_eq!(flags, -1, "{descriptor}");
    }
}

/// Where standard input or output is closed, the next descriptor is a number that programs write to.
#[test]
fn standard_descriptors_are_left_free() {
    let outcome = Child::new("limits::closed").run();
    assert_eq!(outcome.value("place"), "memfd");
    let outcome = Child::new("limits::closed").argument("limited").run();
    assert_eq!(outcome.value("place"), "private memory");
}

/// All memory is locked, that of the future too: lanes that nobody touches are still not there.
fn lock_all() {
    let crew = Crew::hire();
    // SAFETY: no preconditions.
    let locked = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    assert_eq!(locked, 0);
    let before = (memory("VmRSS:"), memory("VmLck:"));
    countersink::region::status();
    crate::work::COUNTER.add(0);
    tell("grown", memory("VmRSS:").saturating_sub(before.0));
    tell("locked", memory("VmLck:").saturating_sub(before.1));
    crew.work();
    check();
    let before = memory("VmRSS:");
    countersink::region::unshare().expect("there is memory");
    tell("unshared", memory("VmRSS:").saturating_sub(before));
}

#[test]
fn all_memory_is_locked() {
    if !is_root("mlockall") {
        return;
    }
    let outcome = Child::new("limits::lock_all").run();
    println!(
        "mlockall: {} KiB more, {} KiB by unshare",
        outcome.value("grown"),
        outcome.value("unshared")
    );
    assert_eq!(outcome.value("place"), "memfd");
    assert!(outcome.number("grown") <= 1024, "{}", outcome.text);
    assert!(outcome.number("locked") <= 4096, "{}", outcome.text);
    assert!(outcome.number("unshared") <= 4096, "{}", outcome.text);
}

/// Future memory is to be locked, and only so much of it may be.
fn lock_future() {
    let crew = Crew::hire();
    let bytes = argument().parse().expect("a number");
    lower(Resource::Memlock, bytes);
    // SAFETY: no preconditions. The limit is for others than root.
    unsafe {
        assert_eq!(libc::setresuid(65534, 65534, 65534), 0);
        assert_eq!(libc::mlockall(libc::MCL_FUTURE), 0);
    }
    // Several threads at once would need room for a region each, for a moment.
    countersink::region::status();
    crew.work();
    check();
}

#[test]
fn little_memory_may_be_locked() {
    if !is_root("a limit for locked memory, as another user") {
        return;
    }
    let outcome = Child::new("limits::lock_future").argument(1 << 20).run();
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("memfd", "region")
    );
    let outcome = Child::new("limits::lock_future").argument(4096).run();
    println!("4 KiB may be locked: {}", outcome.value("place"));
    assert_eq!(outcome.value("place"), "nowhere");
}

/// What one counter takes.
fn resident() {
    static ONE: countersink::Counter = countersink::Counter::new("one");
    // What reading takes is not counted.
    let _ = memory("VmRSS:");
    let before = (memory("RssAnon:"), memory("RssFile:"), memory("RssShmem:"));
    ONE.inc();
    let after = (memory("RssAnon:"), memory("RssFile:"), memory("RssShmem:"));
    tell("anonymous", after.0.saturating_sub(before.0));
    tell("file", after.1.saturating_sub(before.1));
    tell("shared", after.2.saturating_sub(before.2));
    assert_eq!(ONE.sum(), 1);
}

#[test]
fn one_counter_takes_little() {
    let outcome = Child::new("limits::resident").run();
    let parts = ["anonymous", "file", "shared"].map(|key| outcome.number(key));
    println!("one counter: {parts:?} KiB of anonymous, program and shared memory");
    let [anonymous, file, shared] = parts;
    assert!(anonymous + shared <= 128, "{parts:?}");
    // The program's own pages, of which the kernel maps 64 KiB for each that is touched, wherever the linker put them.
    assert!(file <= 512, "{parts:?}");
}

/// Not a case, but a base to compare with.
#[test]
fn nothing_odd() {
    let outcome = Child::new("limits::plain").run();
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("memfd", "region")
    );
    assert_eq!(outcome.value("hindrance"), "");
    assert_eq!(
        (outcome.number("metrics"), outcome.number("segments")),
        (65_536, 64)
    );
}

pub(crate) fn plain() {
    count_and_check();
}
