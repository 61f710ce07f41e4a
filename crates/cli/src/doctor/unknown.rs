//! Why a fact is not known.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::facts::Facts;

/// The reason for each fact that is not known, by its path in [`Facts`], such as `machine.governor`.
pub(super) fn reasons(facts: &Facts, root: &Path) -> BTreeMap<&'static str, String> {
    let (machine, memory) = (&facts.machine, &facts.memory);
    let cpu = "sys/devices/system/cpu";
    let files = [
        (
            "machine.cpu_model",
            machine.cpu_model.is_some(),
            "proc/cpuinfo".to_owned(),
        ),
        (
            "machine.cpus_possible",
            machine.cpus_possible.is_some(),
            format!("{cpu}/possible"),
        ),
        (
            "machine.cpus_online",
            machine.cpus_online.is_some(),
            format!("{cpu}/online"),
        ),
        (
            "machine.caches",
            !machine.caches.is_empty(),
            format!("{cpu}/cpu0/cache/index0/level"),
        ),
        (
            "machine.hypervisor",
            machine.hypervisor.is_some(),
            "sys/hypervisor/type".to_owned(),
        ),
        (
            "machine.clocksource",
            machine.clocksource.is_some(),
            "sys/devices/system/clocksource/clocksource0/current_clocksource".to_owned(),
        ),
        (
            "machine.governor",
            machine.governor.is_some(),
            format!("{cpu}/cpu0/cpufreq/scaling_governor"),
        ),
        (
            "machine.transparent_hugepages",
            machine.transparent_hugepages.is_some(),
            "sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
        ),
        (
            "memory.hugetlb_kib",
            !memory.hugetlb_kib.is_empty(),
            "sys/kernel/mm/hugepages".to_owned(),
        ),
        (
            "memory.overcommit",
            memory.overcommit.is_some(),
            "proc/sys/vm/overcommit_memory".to_owned(),
        ),
        (
            "perf.paranoid",
            facts.perf.paranoid.is_some(),
            "proc/sys/kernel/perf_event_paranoid".to_owned(),
        ),
    ];
    let cores = format!("{cpu}/cpu0/topology/core_id");
    let cores = machine.cpus_allowed.is_some().then_some((
        "machine.threads_per_core",
        machine.threads_per_core.is_some(),
        cores,
    ));
    let unread = files
        .into_iter()
        .chain(cores)
        .filter(|(_, known, _)| !known)
        .map(|(fact, _, path)| (fact, elsewhere().unwrap_or_else(|| unread(root, &path))));
    unread.chain(untold(facts)).collect()
}

/// Facts that no file tells.
fn untold(facts: &Facts) -> impl Iterator<Item = (&'static str, String)> {
    let (machine, rseq) = (&facts.machine, &facts.rseq);
    let old = "the kernel does not tell; it does from Linux 6.3 on";
    let facts = [
        (
            "machine.cpus_allowed",
            machine.cpus_allowed.is_some(),
            "the kernel does not tell, or has more than 1,024 CPUs",
        ),
        (
            "machine.threads_per_core",
            machine.threads_per_core.is_some() || machine.cpus_allowed.is_some(),
            "the allowed CPUs are not known",
        ),
        (
            "machine.kernel",
            machine.kernel.is_some(),
            "the kernel does not tell",
        ),
        (
            "machine.page_size",
            machine.page_size.is_some(),
            "the kernel does not tell",
        ),
        (
            "rseq.feature_size_bytes",
            rseq.feature_size_bytes.is_some(),
            old,
        ),
        ("rseq.alignment_bytes", rseq.alignment_bytes.is_some(), old),
        (
            "rseq.libc_size_bytes",
            rseq.libc_size_bytes.is_some(),
            "the C library shows no such symbol, or the program is static",
        ),
    ];
    let asked = cfg!(not(countersink_portable));
    let text = move |reason: &str| match elsewhere() {
        Some(text) => text,
        None if asked => reason.to_owned(),
        None => "not asked for in this build".to_owned(),
    };
    facts
        .into_iter()
        .filter(|(_, known, _)| !known)
        .map(move |(fact, _, reason)| (fact, text(reason)))
}

/// The reason for everything where the system is not Linux.
fn elsewhere() -> Option<String> {
    let os = std::env::consts::OS;
    (os != "linux").then(|| format!("not asked for on {os}"))
}

/// Why nothing was read from the file or folder of this path below `root`.
fn unread(root: &Path, path: &str) -> String {
    let top = path.split('/').next().unwrap_or(path);
    let mounted = fs::read_dir(root.join(top)).is_ok_and(|mut entries| entries.next().is_some());
    if !mounted {
        return format!("/{top} is not mounted");
    }
    match fs::metadata(root.join(path)) {
        Err(error) if error.kind() == ErrorKind::NotFound => format!("there is no /{path}"),
        Err(error) => format!("/{path}: {error}"),
        Ok(meta) if meta.is_dir() => format!("/{path} has no entries"),
        Ok(_) => match fs::read_to_string(root.join(path)) {
            Err(error) => format!("/{path}: {error}"),
            Ok(_) => format!("/{path} does not tell"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOVERNOR: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";

    #[test]
    fn a_missing_mount_a_missing_file_and_a_useless_file_are_told_apart() {
        let root = tempfile::tempdir().expect("a directory");
        let why = || unread(root.path(), GOVERNOR);
        assert_eq!(why(), "/sys is not mounted");
        fs::create_dir_all(root.path().join("sys")).expect("a mount point");
        assert_eq!(why(), "/sys is not mounted");
        let file = root.path().join(GOVERNOR);
        fs::create_dir_all(file.parent().expect("a parent")).expect("folders");
        assert_eq!(why(), format!("there is no /{GOVERNOR}"));
        fs::write(&file, "\n").expect("a file");
        assert_eq!(why(), format!("/{GOVERNOR} does not tell"));
        fs::write(&file, [0xff]).expect("a file");
        assert!(why().starts_with(&format!("/{GOVERNOR}: ")), "{}", why());
    }

    #[test]
    fn what_is_known_has_no_reason_and_what_is_not_has_one() {
        let root = tempfile::tempdir().expect("a directory");
        let mut facts = Facts::gather();
        facts.machine.governor = Some("performance".to_owned());
        facts.machine.clocksource = None;
        let reasons = reasons(&facts, root.path());
        assert_eq!(reasons.get("machine.governor"), None);
        let clocksource = reasons.get("machine.clocksource").expect("a reason");
        if cfg!(target_os = "linux") {
            assert_eq!(clocksource, "/sys is not mounted");
        }
    }
}
