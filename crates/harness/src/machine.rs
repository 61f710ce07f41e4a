//! The machine that a result was measured on. Nothing here fails: what cannot be read is left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::clock::{self, RealClock};
use crate::cpus::{Topology, format_cpu_list};
use crate::os;

/// A description of the machine, and the conditions of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The version of this crate.
    pub version: Option<String>,
    /// The operating system, as Rust names it.
    pub os: Option<String>,
    /// The architecture, as Rust names it.
    pub arch: Option<String>,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// The CPU's model.
    pub cpu_model: Option<String>,
    /// CPUs that can ever be there, as a list such as `0-63`.
    pub cpus_possible: Option<String>,
    /// CPUs that are on.
    pub cpus_online: Option<String>,
    /// CPUs that the run may use.
    pub cpus_allowed: Option<String>,
    /// The most allowed CPUs that share one core: 1 without SMT.
    pub threads_per_core: Option<usize>,
    /// The caches of CPU 0.
    pub caches: Vec<Cache>,
    /// The hypervisor: its name, or `none` where the CPU says that there is none.
    pub hypervisor: Option<String>,
    /// Vendor and product, as the firmware (DMI) names them.
    pub product: Option<String>,
    /// The kernel's clock source, such as `tsc`.
    pub clocksource: Option<String>,
    /// The frequency governor of CPU 0.
    pub governor: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_hugepages: Option<String>,
    /// Bytes in a page.
    pub page_size: Option<usize>,
    /// The smallest step of the clock that times samples, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_step_ns: Option<u64>,
    /// What experiments add; for example the mechanism that counters used.
    pub conditions: BTreeMap<String, String>,
}

/// One cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: Option<u32>,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: Option<String>,
    /// Its size as the kernel writes it, such as `32K`.
    pub size: Option<String>,
    /// Bytes in a line.
    pub line: Option<u32>,
    /// The CPUs that share it.
    pub cpus: Option<String>,
}

impl Machine {
    /// This machine, as seen by the calling thread.
    pub fn detect() -> Machine {
        let topology = Topology::detect();
        let from_files = Machine::read(Path::new("/"));
        Machine {
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            os: Some(std::env::consts::OS.to_owned()),
            arch: Some(std::env::consts::ARCH.to_owned()),
            kernel: os::kernel_release(),
            cpu_model: cpu_model().or(from_files.cpu_model),
            cpus_allowed: os::allowed_cpus().map(|cpus| format_cpu_list(&cpus)),
            threads_per_core: topology.threads_per_core(),
            hypervisor: from_files.hypervisor.or_else(hypervisor),
            page_size: os::page_size(),
            clock_step_ns: Some(clock::resolution_ns(&RealClock::new())),
            ..from_files
        }
    }

    /// What can be read from the `proc` and `sys` below `root`.
    pub fn read(root: &Path) -> Machine {
        let text = |path: &str| read_line(&root.join(path));
        let dmi = ["sys_vendor", "product_name"].map(|f| text(&format!("sys/class/dmi/id/{f}")));
        let product = dmi.into_iter().flatten().collect::<Vec<_>>().join(" ");
        Machine {
            cpu_model: cpu_model_from_proc(&root.join("proc/cpuinfo")),
            cpus_possible: text("sys/devices/system/cpu/possible"),
            cpus_online: text("sys/devices/system/cpu/online"),
            caches: caches(root),
            hypervisor: text("sys/hypervisor/type"),
            product: (!product.is_empty()).then_some(product),
            clocksource: text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            governor: text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            transparent_hugepages: text("sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|choices| chosen(&choices)),
            ..Machine::default()
        }
    }
}

/// Whether this may be a virtual machine: everything but a CPU that says that there is no hypervisor.
pub(crate) fn is_virtual() -> bool {
    // Asking the CPU means asking the hypervisor, if there is one.
    static IS_VIRTUAL: OnceLock<bool> = OnceLock::new();
    *IS_VIRTUAL.get_or_init(|| hypervisor().as_deref() != Some("none"))
}

/// The file's text without surrounding space; `None` if unreadable or empty.
fn read_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The word in brackets: `always [madvise] never`.
fn chosen(choices: &str) -> Option<String> {
    let (_, rest) = choices.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    Some(word.to_owned())
}

fn cpu_model_from_proc(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            let value = value.trim();
            (key.trim() == name && !value.is_empty()).then(|| value.to_owned())
        })
    };
    // aarch64 gives numbers only.
    let arm = || {
        let (implementer, part) = (field("CPU implementer")?, field("CPU part")?);
        Some(format!("implementer {implementer} part {part}"))
    };
    field("model name").or_else(arm).or_else(|| field("cpu"))
}

fn caches(root: &Path) -> Vec<Cache> {
    let folder = root.join("sys/devices/system/cpu/cpu0/cache");
    let cache = |index: usize| {
        let text = |name: &str| read_line(&folder.join(format!("index{index}/{name}")));
        text("level").map(|level| Cache {
            level: level.parse().ok(),
            kind: text("type"),
            size: text("size"),
            line: text("coherency_line_size").and_then(|bytes| bytes.parse().ok()),
            cpus: text("shared_cpu_list"),
        })
    };
    (0..).map_while(cache).collect()
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn cpu_model() -> Option<String> {
    let brand = raw_cpuid::CpuId::new().get_processor_brand_string()?;
    let model = brand.as_str().trim();
    (!model.is_empty()).then(|| model.to_owned())
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    let cpuid = raw_cpuid::CpuId::new();
    if !cpuid.get_feature_info()?.has_hypervisor() {
        return Some("none".to_owned());
    }
    let name = cpuid
        .get_hypervisor_info()
        .map(|info| format!("{:?}", info.identify()));
    Some(name.unwrap_or_else(|| "unnamed".to_owned()))
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn cpu_model() -> Option<String> {
    None
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn hypervisor() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    #[test]
    fn an_empty_machine_is_all_unknown() {
        let root = tempfile::tempdir().expect("a directory");
        assert_eq!(Machine::read(root.path()), Machine::default());
    }

    #[test]
    fn the_kernels_files_are_read() {
        let root = tempfile::tempdir().expect("a directory");
        let cpu = "sys/devices/system/cpu";
        for (path, text) in [
            (
                "proc/cpuinfo",
                "processor : 0\nmodel name\t: Fast CPU\nmodel name\t: Other\n",
            ),
            (&format!("{cpu}/possible"), "0-63\n"),
            (&format!("{cpu}/online"), "0-3\n"),
            (&format!("{cpu}/cpu0/cache/index0/level"), "1\n"),
            (&format!("{cpu}/cpu0/cache/index0/type"), "Data\n"),
            (&format!("{cpu}/cpu0/cache/index0/size"), "32K\n"),
            (
                &format!("{cpu}/cpu0/cache/index0/coherency_line_size"),
                "64\n",
            ),
            (
                &format!("{cpu}/cpu0/cache/index0/shared_cpu_list"),
                "0,32\n",
            ),
            (
                &format!("{cpu}/cpu0/cpufreq/scaling_governor"),
                "powersave\n",
            ),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/class/dmi/id/product_name", "Standard PC\n"),
            ("sys/hypervisor/type", "xen\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
        ] {
            write(root.path(), path, text);
        }
        let machine = Machine::read(root.path());
        insta::assert_snapshot!(serde_json::to_string(&machine).expect("JSON"), @r#"{"version":null,"os":null,"arch":null,"kernel":null,"cpu_model":"Fast CPU","cpus_possible":"0-63","cpus_online":"0-3","cpus_allowed":null,"threads_per_core":null,"caches":[{"level":1,"kind":"Data","size":"32K","line":64,"cpus":"0,32"}],"hypervisor":"xen","product":"QEMU Standard PC","clocksource":null,"governor":"powersave","transparent_hugepages":"madvise","page_size":null,"conditions":{}}"#);
    }

    #[test]
    fn an_arm_cpu_is_named_by_its_numbers() {
        let root = tempfile::tempdir().expect("a directory");
        write(
            root.path(),
            "proc/cpuinfo",
            "CPU implementer : 0x41\nCPU part : 0xd0c\n",
        );
        let model = Machine::read(root.path()).cpu_model;
        assert_eq!(model.as_deref(), Some("implementer 0x41 part 0xd0c"));
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::detect();
        assert_eq!(machine.arch.as_deref(), Some(std::env::consts::ARCH));
        assert_eq!(machine.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    }
}
