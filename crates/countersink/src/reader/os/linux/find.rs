//! Regions of processes.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::file::Holder;
use super::life::Process;
use super::process::{Refused, candidates};
use crate::reader::open::{Found, Sighting};
use crate::reader::{OpenError, Region};

/// Where the kernel shows processes.
const PROC: &str = "/proc";

pub(in crate::reader) fn of_process(pid: u32) -> Result<Vec<Region>, OpenError> {
    of_process_in(Path::new(PROC), pid)
}

pub(in crate::reader) fn find() -> Result<Found, OpenError> {
    find_in(Path::new(PROC))
}

fn of_process_in(root: &Path, pid: u32) -> Result<Vec<Region>, OpenError> {
    let directory = root.join(pid.to_string());
    let process = Process::of(directory.clone()).ok_or(match directory.exists() {
        true => OpenError::Ended(pid),
        false => OpenError::NoProcess(pid),
    })?;
    let mut sightings = Sightings::default();
    let looked = sightings.look(pid, &process);
    let is_alive = process.is_alive();
    looked.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => OpenError::NotOurs(pid),
        _ if !is_alive => OpenError::Ended(pid),
        _ => OpenError::Open {
            origin: format!("process {pid}"),
            error,
        },
    })?;
    let mut regions = Vec::new();
    let mut first_error = None;
    for sighting in sightings.found {
        match sighting.region {
            Ok(region) => regions.push(region),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    match (regions.is_empty(), first_error) {
        (false, _) => Ok(regions),
        (true, _) if !is_alive => Err(OpenError::Ended(pid)),
        (true, Some(error)) => Err(error),
        (true, None) => Err(OpenError::NoRegion(pid)),
    }
}

fn find_in(root: &Path) -> Result<Found, OpenError> {
    let failed = |error| OpenError::Open {
        origin: root.display().to_string(),
        error,
    };
    let mut pids: Vec<u32> = fs::read_dir(root)
        .map_err(failed)?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    let mut sightings = Sightings::default();
    let mut hidden = 0;
    for pid in pids {
        // Processes may end at any time.
        let Some(process) = Process::of(root.join(pid.to_string())) else {
            continue;
        };
        let looked = sightings.look(pid, &process);
        hidden +=
            usize::from(looked.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied));
    }
    Ok(Found {
        regions: sightings.found,
        hidden,
    })
}

/// What has been seen so far.
#[derive(Debug, Default)]
struct Sightings {
    found: Vec<Sighting>,
    /// Device and inode of regions, and where they are in what was found.
    ids: HashMap<(u64, u64), usize>,
}

impl Sightings {
    /// Looks at a process.
    fn look(&mut self, pid: u32, process: &Process) -> io::Result<()> {
        for candidate in candidates(&process.directory)? {
            let origin = format!("{} of process {pid}", candidate.describe());
            match candidate.open(process, &origin, |id| self.ids.get(&id).copied()) {
                Ok(region) => {
                    if let Some(id) = region.id() {
                        self.ids.insert(id, self.found.len());
                    }
                    self.add(pid, Ok(region));
                }
                Err(Refused::Seen(at)) => self.add_process(at, pid, process),
                // It was closed or unmapped meanwhile.
                Err(Refused::Error(OpenError::Open { error, .. })) if is_no_more(&error) => {}
                Err(Refused::Error(error)) => self.add(pid, Err(error)),
            }
        }
        Ok(())
    }

    fn add(&mut self, pid: u32, region: Result<Region, OpenError>) {
        self.found.push(Sighting {
            pids: vec![pid],
            region,
        });
    }

    /// Another process, or another descriptor of the same.
    fn add_process(&mut self, at: usize, pid: u32, process: &Process) {
        let Some(sighting) = self.found.get_mut(at) else {
            return;
        };
        if sighting.pids.last() == Some(&pid) {
            return;
        }
        sighting.pids.push(pid);
        if let Ok(region) = &mut sighting.region
            && let Holder::Processes(processes) = region.holder_mut()
        {
            processes.push(process.clone());
        }
    }
}

fn is_no_more(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    [Errno::NOENT, Errno::SRCH]
        .iter()
        .any(|gone| number == Some(gone.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::super::process::memfd_device;
    use super::*;
    use crate::reader::State;
    use crate::reader::testing::{Builder, CPU, count, counter};

    /// A directory that looks like `/proc`.
    struct Processes(tempfile::TempDir);

    impl Processes {
        fn new() -> Self {
            Processes(tempfile::tempdir().expect("a directory"))
        }

        /// A process with a descriptor 3 that leads to a file, and mappings.
        fn add(&self, pid: u32, descriptor: Option<&Path>, maps: &str) {
            let directory = self.0.path().join(pid.to_string());
            fs::create_dir_all(directory.join("fd")).expect("a directory");
            let stat = format!("{pid} (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99 20");
            fs::write(directory.join("stat"), stat).expect("written");
            fs::write(directory.join("maps"), maps).expect("written");
            symlink("/proc/self/mem", directory.join("mem")).expect("a link");
            if let Some(path) = descriptor {
                symlink(path, directory.join("fd/3")).expect("a link");
            }
        }

        fn file(&self, name: &str, bytes: &[u8]) -> std::path::PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, bytes).expect("written");
            path
        }

        fn regions(&self, pid: u32) -> Result<Vec<Region>, OpenError> {
            of_process_in(self.0.path(), pid)
        }
    }

    fn builder() -> Builder {
        let mut builder = Builder::new();
        builder.entry(&counter("a", 0));
        builder.words(CPU, 0, &[5]);
        builder
    }

    /// A line of a process's mappings, for bytes of this process that are a part of a memfd.
    fn line(bytes: &[u8], offset: usize) -> String {
        let range = bytes.as_ptr_range();
        let (start, end) = (range.start as usize, range.end as usize);
        let device = memfd_device().expect("memfds");
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let name = "/memfd:countersink (deleted)";
        format!("{start:x}-{end:x} rw-s {offset:08x} {major:02x}:{minor:02x} 4242 {name}\n")
    }

    fn value(region: &Region) -> u64 {
        count(&region.snapshot().expect("a snapshot"), "a")
    }

    #[test]
    fn a_pipe_with_a_regions_name_does_not_hang() {
        let processes = Processes::new();
        let pipe = processes.0.path().join("x.countersink");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        processes.add(7, Some(&pipe), "");
        let error = processes.regions(7).expect_err("no region");
        assert!(
            matches!(error, OpenError::NotRegular { what: "a pipe", .. }),
            "{error}"
        );
        let found = find_in(processes.0.path()).expect("processes");
        assert_eq!((found.regions.len(), found.hidden), (1, 0));
        assert!(found.regions[0].region.is_err());
    }

    #[test]
    fn processes_that_share_a_file_are_found_together() {
        let processes = Processes::new();
        let file = processes.file("x.countersink", &builder().bytes);
        let other = processes.file("y.countersink", &builder().bytes);
        processes.add(10, Some(&file), "");
        processes.add(9, Some(&file), "");
        processes.add(8, Some(&other), "");
        processes.add(11, None, "");
        let found = find_in(processes.0.path()).expect("processes").regions;
        let pids: Vec<_> = found.iter().map(|sighting| &sighting.pids[..]).collect();
        assert_eq!(pids, [&[8][..], &[9, 10]]);
        assert_eq!(found[1].region.as_ref().map(value).ok(), Some(5));
        assert!(matches!(
            processes.regions(11),
            Err(OpenError::NoRegion(11))
        ));
        assert!(matches!(
            processes.regions(12),
            Err(OpenError::NoProcess(12))
        ));
    }

    /// A region that is mapped in two parts, the second one behind the first.
    #[test]
    fn what_has_no_descriptor_is_read_from_memory() {
        let processes = Processes::new();
        let builder = builder();
        let (first, second) = builder
            .bytes
            .split_at(builder.layout.entries_offset() as usize);
        let maps = line(second, first.len()) + &line(first, 0);
        processes.add(7, None, &maps);
        let regions = processes.regions(7).expect("a region");
        assert_eq!((regions.len(), value(&regions[0])), (1, 5));
        assert_eq!(
            (regions[0].id(), regions[0].state()),
            (memfd_device().map(|device| (device, 4242)), State::Alive)
        );
        assert!(
            regions[0].origin().starts_with("mapping"),
            "{}",
            regions[0].origin()
        );

        // The second part is not mapped: nothing is known of entries.
        processes.add(8, None, &line(first, 0));
        let regions = processes.regions(8).expect("a region");
        let snapshot = regions[0].snapshot().expect("a snapshot");
        assert_eq!(
            (snapshot.metrics.len(), snapshot.problems.len()),
            (0, 2),
            "{:?}",
            snapshot.problems
        );
        drop(builder);
    }

    #[test]
    fn memory_of_a_file_under_a_memfds_name_is_not_read() {
        let processes = Processes::new();
        let builder = builder();
        let other = line(&builder.bytes, 0).replace(" 4242 ", "1 4242 ");
        processes.add(7, None, &other);
        let error = processes.regions(7).expect_err("no region");
        assert!(matches!(error, OpenError::NotMemfd { .. }), "{error}");
    }

    #[test]
    fn a_process_that_is_gone_is_dead() {
        let processes = Processes::new();
        let builder = builder();
        processes.add(7, None, &line(&builder.bytes, 0));
        let regions = processes.regions(7).expect("a region");
        assert_eq!(regions[0].state(), State::Alive);
        fs::remove_dir_all(processes.0.path().join("7")).expect("removed");
        assert_eq!(regions[0].state(), State::Dead);
    }

    #[test]
    fn who_only_reads_a_region_does_not_have_it() {
        let processes = Processes::new();
        let path = processes.file("x.countersink", &builder().bytes);
        let has_it = || {
            let found = find().expect("processes").regions;
            let ids = found
                .iter()
                .filter_map(|sighting| sighting.region.as_ref().ok()?.id());
            let wanted = Region::open_file(&path).expect("a region").id();
            ids.into_iter().any(|id| Some(id) == wanted)
        };
        let reader = File::open(&path).expect("opened");
        assert!(!has_it());
        let writer = File::options().write(true).open(&path).expect("opened");
        assert!(has_it());
        drop((reader, writer));
    }
}
