//! Which CPUs there are, and where threads go.
//!
//! Threads are placed inside the allowed set only (`sched_getaffinity`: cpusets, `taskset`), one
//! thread per core first and SMT siblings last. More threads than CPUs wrap round, and the
//! placement says so.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::thread;

use crate::os;

/// A core: the package that it is in, and its number there.
pub type Core = (i64, i64);

/// One allowed CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// The kernel's number of the CPU.
    pub id: usize,
    /// The core that the CPU is a hardware thread of; `None` where the kernel does not tell.
    pub core: Option<Core>,
}

/// The CPUs that threads may be placed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// In the order in which threads are placed.
    cpus: Vec<Cpu>,
    can_pin: bool,
}

/// Where the threads of one sample go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The CPU of each thread. Empty where threads cannot be pinned.
    pub cpus: Vec<usize>,
    /// Whether there are more threads than allowed CPUs.
    pub oversubscribed: bool,
    /// Whether two of the CPUs are SMT siblings, that is, share a core. `None`: unknown.
    pub shared_cores: Option<bool>,
}

impl Placement {
    /// Pins the calling thread as the plan's thread of this index, and returns the CPU; `None` where
    /// the plan has none or the system refuses.
    pub fn pin(&self, thread_index: usize) -> Option<usize> {
        let cpu = self.cpus.get(thread_index).copied();
        cpu.filter(|&cpu| os::pin(cpu).is_ok())
    }
}

impl Topology {
    /// The CPUs that the calling thread may run on.
    ///
    /// Where the system does not tell (not Linux, or more than 1,024 CPUs), threads are not pinned,
    /// and only the number of CPUs is known.
    pub fn detect() -> Topology {
        match os::allowed_cpus() {
            Some(allowed) if !allowed.is_empty() => Topology::read(Path::new("/"), &allowed),
            _ => Topology::unpinned(thread::available_parallelism().map_or(1, usize::from)),
        }
    }

    /// The given CPUs, with cores from `sys/devices/system/cpu` below `root`. CPUs without a
    /// readable topology count as cores of their own.
    pub fn read(root: &Path, allowed: &[usize]) -> Topology {
        let core = |id| {
            let topology = root.join(format!("sys/devices/system/cpu/cpu{id}/topology"));
            let number = |name| -> Option<i64> {
                let text = fs::read_to_string(topology.join(name)).ok()?;
                text.trim().parse().ok()
            };
            Some((number("physical_package_id")?, number("core_id")?))
        };
        let cpus = allowed.iter().map(|&id| Cpu { id, core: core(id) });
        Topology::new(cpus.collect())
    }

    /// The given CPUs.
    pub fn new(mut cpus: Vec<Cpu>) -> Topology {
        cpus.sort_by_key(|cpu| cpu.id);
        cpus.dedup_by_key(|cpu| cpu.id);
        // The first hardware thread of each core, then the second of each, and so on.
        let siblings_before = |i: usize| {
            let core = cpus[i].core;
            let before = &cpus[..i];
            before
                .iter()
                .filter(|c| core.is_some() && c.core == core)
                .count()
        };
        let mut ranked: Vec<(usize, Cpu)> = (0..cpus.len())
            .map(|i| (siblings_before(i), cpus[i]))
            .collect();
        ranked.sort_by_key(|&(rank, cpu)| (rank, cpu.id));
        Topology {
            cpus: ranked.into_iter().map(|(_, cpu)| cpu).collect(),
            can_pin: true,
        }
    }

    /// So many CPUs that threads cannot be pinned to.
    pub fn unpinned(cpus: usize) -> Topology {
        Topology {
            cpus: (0..cpus).map(|id| Cpu { id, core: None }).collect(),
            can_pin: false,
        }
    }

    /// The CPUs, in the order in which threads are placed.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The most allowed CPUs that share one core; `None` where a core is unknown.
    pub fn threads_per_core(&self) -> Option<usize> {
        let cores: Option<Vec<Core>> = self.cpus.iter().map(|cpu| cpu.core).collect();
        let cores = cores?;
        let count = |core: &Core| cores.iter().filter(|c| *c == core).count();
        cores.iter().map(count).max()
    }

    /// Where so many threads go.
    pub fn place(&self, threads: usize) -> Placement {
        let used = &self.cpus[..threads.min(self.cpus.len())];
        let placed: Vec<usize> = if self.can_pin {
            self.cpus
                .iter()
                .cycle()
                .take(threads)
                .map(|cpu| cpu.id)
                .collect()
        } else {
            Vec::new()
        };
        let cores: Option<Vec<Core>> = used.iter().map(|cpu| cpu.core).collect();
        Placement {
            cpus: placed,
            oversubscribed: threads > self.cpus.len(),
            shared_cores: cores.map(|cores| {
                let distinct: HashSet<Core> = cores.iter().copied().collect();
                distinct.len() < cores.len()
            }),
        }
    }
}

/// How many CPUs a list such as `0-3,8` has; `None` if it is none.
pub fn count_cpu_list(list: &str) -> Option<usize> {
    let count = |part: &str| -> Option<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let [first, last] = [first, last].map(|cpu| cpu.trim().parse::<usize>().ok());
        last?.checked_sub(first?)?.checked_add(1)
    };
    let mut counts = list.split(',').map(count);
    counts.try_fold(0_usize, |sum, count| sum.checked_add(count?))
}

/// CPU numbers as the kernel writes lists: `0-3,8`.
pub fn format_cpu_list(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let texts: Vec<String> = ranges
        .iter()
        .map(|&(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_counted_and_not_spelled_out() {
        assert_eq!(count_cpu_list("0-3,8"), Some(5));
        assert_eq!(count_cpu_list("1-18446744073709551615"), Some(usize::MAX));
        for bad in [
            "",
            "x",
            "3-1",
            "0-18446744073709551615",
            "1-18446744073709551615,1",
        ] {
            assert_eq!(count_cpu_list(bad), None, "{bad}");
        }
    }

    fn topology(cpus: &[(usize, i64, i64)]) -> Topology {
        let cpu = |&(id, package, core)| Cpu {
            id,
            core: Some((package, core)),
        };
        Topology::new(cpus.iter().map(cpu).collect())
    }

    fn order(topology: &Topology) -> Vec<usize> {
        topology.cpus().iter().map(|cpu| cpu.id).collect()
    }

    #[test]
    fn adjacent_siblings_come_last() {
        let t = topology(&[(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 0, 1)]);
        assert_eq!(order(&t), [0, 2, 1, 3]);
        assert_eq!(t.place(2).shared_cores, Some(false));
        assert_eq!(t.place(3).shared_cores, Some(true));
        assert_eq!(t.threads_per_core(), Some(2));
    }

    #[test]
    fn siblings_half_way_round_come_last() {
        let t = topology(&[(0, 0, 0), (1, 0, 1), (2, 0, 0), (3, 0, 1)]);
        assert_eq!(order(&t), [0, 1, 2, 3]);
    }

    #[test]
    fn the_same_core_number_in_two_packages_is_two_cores() {
        let t = topology(&[(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 1, 0)]);
        assert_eq!(order(&t), [0, 2, 1, 3]);
        assert_eq!(t.place(2).shared_cores, Some(false));
    }

    #[test]
    fn four_threads_per_core_and_gaps_in_the_allowed_set() {
        let t = topology(&[(9, 0, 1), (4, 0, 0), (5, 0, 0), (6, 0, 0), (7, 0, 0)]);
        assert_eq!(order(&t), [4, 9, 5, 6, 7]);
        assert_eq!(t.threads_per_core(), Some(4));
    }

    #[test]
    fn more_threads_than_cpus_wrap_round_and_are_marked() {
        let t = topology(&[(3, 0, 0), (5, 0, 1)]);
        let full = t.place(2);
        assert_eq!(full.cpus, [3, 5]);
        assert!(!full.oversubscribed);
        let over = t.place(5);
        assert_eq!(over.cpus, [3, 5, 3, 5, 3]);
        assert!(over.oversubscribed);
        assert_eq!(over.shared_cores, Some(false));
    }

    #[test]
    fn without_topology_every_cpu_is_a_core_and_siblings_are_unknown() {
        let root = tempfile::tempdir().expect("a directory");
        let t = Topology::read(root.path(), &[2, 0, 1]);
        assert_eq!(order(&t), [0, 1, 2]);
        assert_eq!(t.place(2).shared_cores, None);
        assert_eq!(t.threads_per_core(), None);
    }

    #[test]
    fn topology_is_read_from_the_kernels_files() {
        let root = tempfile::tempdir().expect("a directory");
        for (id, core) in [(0, 7), (1, 7), (2, 9)] {
            let folder = root
                .path()
                .join(format!("sys/devices/system/cpu/cpu{id}/topology"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("core_id"), format!("{core}\n")).expect("a file");
            fs::write(folder.join("physical_package_id"), "0\n").expect("a file");
        }
        let t = Topology::read(root.path(), &[0, 1, 2]);
        assert_eq!(order(&t), [0, 2, 1]);
    }

    #[test]
    fn without_pinning_only_the_number_counts() {
        let t = Topology::unpinned(2);
        assert_eq!(t.place(2).cpus, [0; 0]);
        assert!(!t.place(2).oversubscribed);
        assert!(t.place(3).oversubscribed);
    }

    #[test]
    fn the_detected_topology_has_a_cpu() {
        assert!(!Topology::detect().cpus().is_empty());
    }

    #[test]
    fn lists_read_like_the_kernels() {
        assert_eq!(format_cpu_list(&[]), "");
        assert_eq!(format_cpu_list(&[4]), "4");
        assert_eq!(format_cpu_list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }
}
