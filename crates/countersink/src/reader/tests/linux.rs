//! Files, processes, core files.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, MemfdFlags, Mode, memfd_create, mknodat};

use crate::layout::header;
use crate::reader::testing::{Builder, CPU, count, counter};
use crate::reader::{Info, Life, OpenError, Pruned, Region, State, files_in, find, prune};

/// A region with one counter, made by a process.
fn region_of(pid: u32, value: u64) -> Builder {
    let mut builder = Builder::new();
    builder.put(header::PID, &pid.to_ne_bytes());
    builder.entry(&counter("a", 0));
    builder.words(CPU, 0, &[value]);
    builder
}

fn value_of(region: &Region) -> u64 {
    count(&region.snapshot().expect("a snapshot"), "a")
}

fn private_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).expect("permissions");
    directory
}

/// A pipe that would hang whoever opens it.
fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
}

/// A memfd with a region's name.
fn memfd(builder: &Builder) -> File {
    let memfd = File::from(memfd_create("countersink", MemfdFlags::CLOEXEC).expect("a memfd"));
    std::os::unix::fs::FileExt::write_all_at(&memfd, &builder.bytes, 0).expect("written");
    memfd
}

#[test]
fn a_memfd_is_found_by_its_descriptor() {
    let memfd = memfd(&region_of(1_000_001, 5));
    let copy = memfd.try_clone().expect("a copy");
    let is_it = |region: &Region| region.info().pid == 1_000_001;
    let regions = Region::of_process(std::process::id()).expect("regions");
    let found: Vec<_> = regions.iter().filter(|region| is_it(region)).collect();
    assert_eq!(
        (found.len(), value_of(found[0]), found[0].state()),
        (1, 5, State::Alive)
    );
    assert!(
        found[0].origin().contains("descriptor"),
        "{}",
        found[0].origin()
    );

    let found = find().expect("processes").regions;
    let mut found = found
        .iter()
        .filter(|sighting| sighting.region.as_ref().is_ok_and(is_it));
    assert_eq!(
        found.next().map(|sighting| &sighting.pids[..]),
        Some(&[std::process::id()][..])
    );
    assert!(found.next().is_none());
    drop((memfd, copy));
}

#[test]
fn processes_without_a_region_say_so() {
    let error = Region::of_process(u32::MAX).expect_err("no process");
    assert!(matches!(error, OpenError::NoProcess(u32::MAX)));
    let mut child = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("a child");
    let error = Region::of_process(child.id()).expect_err("no region");
    assert!(matches!(error, OpenError::NoRegion(_)), "{error}");
    child.kill().expect("killed");
    // Until it is waited for, its number is taken.
    let ended = loop {
        match Region::of_process(child.id()) {
            Err(OpenError::NoRegion(_)) => std::thread::yield_now(),
            other => break other,
        }
    };
    assert!(matches!(ended, Err(OpenError::Ended(_))), "{ended:?}");
    child.wait().expect("waited for");
}

#[test]
fn region_files_are_opened_and_nothing_else() {
    let directory = private_directory();
    let path = directory.path().join("x.countersink");
    fs::write(&path, region_of(1, 7).bytes).expect("written");
    let region = Region::open_file(&path).expect("a region");
    assert_eq!((value_of(&region), region.state()), (7, State::Dead));

    let link = directory.path().join("link.countersink");
    symlink(&path, &link).expect("a link");
    let fifo = directory.path().join("fifo.countersink");
    pipe(&fifo);
    for (path, what) in [
        (link, "symbolic link"),
        (fifo, "pipe"),
        (directory.path().to_owned(), "directory"),
        ("/dev/zero".into(), "device"),
    ] {
        let error = Region::open_file(&path).expect_err("no file");
        assert!(
            matches!(error, OpenError::NotRegular { .. }) && error.to_string().contains(what),
            "{error}"
        );
    }
    let missing = Region::open_file(directory.path().join("none")).expect_err("no file");
    assert!(matches!(missing, OpenError::Open { .. }), "{missing}");
}

#[test]
fn huge_files_are_no_regions() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    if file.as_file().set_len(1 << 40).is_ok() {
        let error = Region::open_file(file.path()).expect_err("no region");
        // Zeros are what a region begins as.
        assert!(matches!(error, OpenError::NotReady { .. }), "{error}");
        assert!(matches!(
            Region::in_core(file.path()),
            Err(OpenError::NoCore { .. })
        ));
    }
}

#[test]
fn holes_are_zeros_and_a_file_that_was_cut_off_is_not() {
    let directory = private_directory();
    let path = directory.path().join("x.countersink");
    let mut builder = region_of(1, 7);
    let size = builder.bytes.len() as u64;
    let end = builder.word_at(0, CPU + 1, 0);
    builder.bytes.truncate(end);
    fs::write(&path, &builder.bytes).expect("written");
    let file = File::options().write(true).open(&path).expect("opened");
    let region = Region::open_file(&path).expect("a region");
    let cut_off = region.snapshot().expect("a snapshot");
    assert_eq!(
        (cut_off.metrics.len(), cut_off.problems.len()),
        (0, 2),
        "{:?}",
        cut_off.problems
    );
    file.set_len(size).expect("longer");
    assert_eq!(value_of(&region), 7);
}

#[test]
fn a_lock_says_alive() {
    let directory = private_directory();
    let path = directory.path().join("x.countersink");
    fs::write(&path, region_of(1, 7).bytes).expect("written");
    let region = Region::open_file(&path).expect("a region");
    let owner = lock(&path);
    assert_eq!(region.state(), State::Alive);
    let pruned = prune(directory.path()).expect("pruned");
    assert!(
        matches!(&pruned[..], [Pruned::Alive(at)] if *at == path),
        "{pruned:?}"
    );
    drop(owner);
    assert_eq!(region.state(), State::Dead);
    let pruned = prune(directory.path()).expect("pruned");
    assert!(
        matches!(&pruned[..], [Pruned::Removed(at)] if *at == path),
        "{pruned:?}"
    );
    assert!(!path.exists());
    assert_eq!(value_of(&region), 7);
}

/// Locks a file as a writer does.
fn lock(path: &Path) -> File {
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("opened");
    assert!(crate::reader::os::lock_for_tests(&file));
    file
}

#[test]
fn pruning_removes_only_what_is_ours_and_dead() {
    let directory = private_directory();
    let at = |name: &str| directory.path().join(name);
    let is_alive = own_info();
    let mut alive = region_of(is_alive.pid, 1);
    alive.put(header::START_TIME, &is_alive.start_time.to_ne_bytes());
    alive.put(header::PID_NAMESPACE, &is_alive.pid_namespace.to_ne_bytes());
    alive.put(header::BOOT, &is_alive.boot);
    fs::write(at("alive.countersink"), alive.bytes).expect("written");
    fs::write(at("dead.countersink"), region_of(1, 1).bytes).expect("written");
    fs::write(at("linked.countersink"), region_of(1, 1).bytes).expect("written");
    fs::hard_link(at("linked.countersink"), at("other")).expect("linked");
    fs::write(at("nothing.countersink"), b"something else").expect("written");
    fs::write(at("notes.txt"), b"something else").expect("written");
    symlink(at("notes.txt"), at("link.countersink")).expect("linked");
    pipe(&at("pipe.countersink"));
    fs::write(at(".countersink-1.tmp"), b"").expect("written");
    fs::write(at(".countersink-2.tmp"), b"").expect("written");
    let old = File::options()
        .write(true)
        .open(at(".countersink-1.tmp"))
        .expect("opened");
    old.set_modified(SystemTime::now() - Duration::from_secs(3600))
        .expect("set");
    drop(old);
    let pruned = prune(directory.path()).expect("pruned");
    let removed: Vec<_> = pruned
        .iter()
        .filter_map(|pruned| match pruned {
            Pruned::Removed(path) => path.file_name().and_then(OsStr::to_str),
            _ => None,
        })
        .collect();
    assert_eq!(removed, [".countersink-1.tmp", "dead.countersink"]);
    assert_eq!(fs::read_dir(directory.path()).expect("read").count(), 8);
    assert_eq!(pruned.len(), 8);
}

#[test]
fn directories_that_others_can_write_to_are_not_trusted() {
    let directory = private_directory();
    fs::write(
        directory.path().join("x.countersink"),
        region_of(1, 7).bytes,
    )
    .expect("written");
    fs::write(directory.path().join("y.countersink"), b"").expect("written");
    let files = files_in(directory.path()).expect("files");
    assert_eq!(files.len(), 2);
    assert_eq!(files[0].region.as_ref().map(value_of).ok(), Some(7));
    assert!(files[1].region.is_err());

    let link = private_directory();
    let link = link.path().join("link");
    symlink(directory.path(), &link).expect("a link");
    for path in [link.clone(), PathBuf::from(format!("{}/", link.display()))] {
        assert!(matches!(files_in(path), Err(OpenError::NotTrusted { .. })));
    }
    for mode in [0o770, 0o707, 0o1777] {
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).expect("permissions");
        assert!(
            matches!(
                files_in(directory.path()),
                Err(OpenError::NotTrusted { .. })
            ),
            "{mode:o}"
        );
        assert!(prune(directory.path()).is_err());
    }
}

/// What a region of this process says of it.
fn own_info() -> Info {
    let mut info = Builder::new().region().info().clone();
    let stat = fs::read_to_string("/proc/self/stat").expect("read");
    let after = stat.rsplit(')').next().expect("fields");
    let start_time = after.split_ascii_whitespace().nth(19).expect("field 22");
    info.pid = std::process::id();
    info.start_time = start_time.parse().expect("a number");
    info.boot = crate::reader::os::boot().expect("a boot");
    let namespace = fs::metadata("/proc/self/ns/pid").expect("a namespace");
    info.pid_namespace = std::os::unix::fs::MetadataExt::ino(&namespace);
    info
}

#[test]
fn the_creator_is_told_from_others() {
    let info = own_info();
    let with = |change: fn(&mut Info)| {
        let mut changed = info.clone();
        change(&mut changed);
        changed.creator()
    };
    assert_eq!(info.creator(), Life::Alive);
    assert_eq!(with(|info| info.start_time += 1), Life::Reused);
    assert_eq!(with(|info| info.pid = 0x7fff_ffff), Life::Dead);
    assert_eq!(with(|info| info.boot[0] ^= 1), Life::Dead);
    assert_eq!(with(|info| info.pid_namespace += 1), Life::Unknown);
}
