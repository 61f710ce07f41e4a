//! What a user calls a region: a pid, a program, a region file, a core file.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use countersink::reader::{Life, OpenError, Region, Sighting, State, files_in, find};

use crate::names;

/// The variable that says where region files are; the library's, too.
const DIRECTORY: &str = "COUNTERSINK_DIR";

/// A region that was asked for.
#[derive(Debug)]
pub(crate) struct Target {
    /// The processes it was found with; none for files.
    pub(crate) pids: Vec<u32>,
    pub(crate) region: Region,
}

impl Target {
    /// Whose region it is, and whether any of them lives.
    pub(crate) fn who(&self) -> String {
        let info = self.region.info();
        let state = state(self.region.state());
        if self.pids.is_empty() {
            let reused = match info.creator() {
                Life::Reused => ", which is another process now",
                _ => "",
            };
            return format!("made by pid {}{reused}; {state}", info.pid);
        }
        let made = match self.pids.contains(&info.pid) {
            true => String::new(),
            false => format!("made by what called itself pid {}; ", info.pid),
        };
        format!("{}; {made}{state}", pids(&self.pids))
    }

    /// The program, and where it is, for messages.
    pub(crate) fn name(&self) -> String {
        let program = names::escaped(&self.region.info().program);
        match self.pids.as_slice() {
            [] => format!("{program} ({})", names::escaped(self.region.origin())),
            some => format!("{program} ({})", pids(some)),
        }
    }
}

/// `pid 1`, or `pids 1, 2`.
pub(crate) fn pids(pids: &[u32]) -> String {
    let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
    let plural = if pids.len() == 1 { "" } else { "s" };
    format!("pid{plural} {}", numbers.join(", "))
}

/// Whether anyone counts in a region, in a word.
pub(crate) fn state(state: State) -> &'static str {
    match state {
        State::Alive => "alive",
        State::Dead => "dead",
        _ => "unknown",
    }
}

/// The directory with region files, if there is one.
pub(crate) fn directory(asked: Option<&Path>) -> Option<PathBuf> {
    let set = || env::var_os(DIRECTORY).filter(|directory| !directory.is_empty());
    asked
        .map(Path::to_owned)
        .or_else(|| set().map(PathBuf::from))
}

/// What a reader says of a file that is not even a core file.
const NO_CORE: &str = "is no core file";

/// All regions that a text means; never none.
///
/// # Errors
/// A sentence that says why there is none.
pub(crate) fn open(text: &str) -> anyhow::Result<Vec<Target>> {
    if let Ok(pid) = text.parse() {
        return of_process(pid);
    }
    if text.contains('/') {
        return of_file(Path::new(text));
    }
    of_program(text)
}

fn of_process(pid: u32) -> anyhow::Result<Vec<Target>> {
    match Region::of_process(pid) {
        Ok(regions) => {
            // The process is looked into all the same if others cannot be listed.
            let found = find().map_or_else(|_| Vec::new(), |found| found.regions);
            let target = |region| Target {
                pids: sharing(pid, &region, &found),
                region,
            };
            Ok(regions.into_iter().map(target).collect())
        }
        Err(error @ (OpenError::NoProcess(_) | OpenError::NoRegion(_) | OpenError::Ended(_))) => {
            let left = files()
                .into_iter()
                .find(|file| file.region.info().pid == pid);
            match left {
                None => Err(error.into()),
                Some(file) => Err(anyhow!(
                    "{error}; an earlier process of that number has left {}",
                    names::escaped(file.region.origin())
                )),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// All processes that have a process's region, as far as they may be looked into.
fn sharing(pid: u32, region: &Region, found: &[Sighting]) -> Vec<u32> {
    let is_same = |sighting: &&Sighting| {
        let other = sighting.region.as_ref().ok().and_then(Region::id);
        other.is_some() && other == region.id() && sighting.pids.contains(&pid)
    };
    let sighting = found.iter().find(is_same);
    sighting.map_or_else(|| vec![pid], |sighting| sighting.pids.clone())
}

/// A region file, or else a core file.
fn of_file(path: &Path) -> anyhow::Result<Vec<Target>> {
    let of = |region| Target {
        pids: Vec::new(),
        region,
    };
    match Region::open_file(path) {
        Ok(region) => Ok(vec![of(region)]),
        Err(no_region @ OpenError::NotRegion { .. }) => match Region::in_core(path) {
            Ok(regions) => Ok(regions.into_iter().map(of).collect()),
            Err(OpenError::NoCore { why, .. }) if why == NO_CORE => {
                bail!("{}", names::escaped(&no_region.to_string()))
            }
            Err(no_core) => bail!("{}", names::escaped(&no_core.to_string())),
        },
        Err(error) => bail!("{}", names::escaped(&error.to_string())),
    }
}

fn of_program(program: &str) -> anyhow::Result<Vec<Target>> {
    let found = find()?;
    let hidden = found.hidden;
    let alive = found.regions.into_iter().filter_map(|sighting| {
        Some(Target {
            pids: sighting.pids,
            region: sighting.region.ok()?,
        })
    });
    let mut targets: Vec<Target> = alive.collect();
    for file in files() {
        if targets
            .iter()
            .all(|target| target.region.id() != file.region.id())
        {
            targets.push(file);
        }
    }
    targets.retain(|target| is_called(&target.region.info().program, program));
    match targets.is_empty() {
        false => Ok(targets),
        true if Path::new(program).symlink_metadata().is_ok() => of_file(Path::new(program)),
        true => Err(anyhow!(
            "no program called {} has a region{}; `countersink list` shows which have one",
            names::escaped(program),
            not_looked_into(hidden),
        )),
    }
}

/// What could not be looked into, as a part of a sentence; empty if all could.
pub(crate) fn not_looked_into(hidden: usize) -> String {
    match hidden {
        0 => String::new(),
        1 => " (one process may not be looked into)".to_owned(),
        n => format!(" ({n} processes may not be looked into)"),
    }
}

/// The kernel keeps 15 bytes of a program's name.
fn is_called(program: &str, name: &str) -> bool {
    program == name || (program.len() == 15 && name.starts_with(program))
}

/// The region files of the directory that the environment names; those that cannot be read are not
/// what was meant.
fn files() -> Vec<Target> {
    let files = directory(None).and_then(|directory| files_in(directory).ok());
    let regions = files
        .into_iter()
        .flatten()
        .filter_map(|file| file.region.ok());
    regions
        .map(|region| Target {
            pids: Vec::new(),
            region,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_far_as_the_kernel_keeps_them() {
        assert!(is_called("demo", "demo"));
        assert!(!is_called("demo", "demonstration"));
        assert!(is_called("a_long_program_", "a_long_program_name"));
        assert!(!is_called("a_long_program_", "a_long_program"));
    }

    #[test]
    fn pids_are_listed() {
        assert_eq!(pids(&[7]), "pid 7");
        assert_eq!(pids(&[7, 8]), "pids 7, 8");
    }
}
