//! The facts for people.

use std::fmt::Display;

use super::facts::Facts;
use crate::output::wrap;

/// Sections of aligned lines.
pub(super) fn render(facts: &Facts) -> String {
    let mut page = Page::default();
    counting(&mut page, facts);
    machine(&mut page, facts);
    clocks(&mut page, facts);
    memory(&mut page, facts);
    page.section("Advice");
    if facts.advice.is_empty() {
        page.text("Nothing is missing for counting.");
    }
    for advice in &facts.advice {
        page.text(advice);
    }
    page.0
}

fn counting(page: &mut Page, facts: &Facts) {
    let mechanism = &facts.mechanism;
    page.section("Counting");
    page.line("mechanism", &mechanism.sentence);
    let registrar = match mechanism.registrar {
        Some("libc") => "the C library",
        Some(_) => "this library, each thread at its first count",
        None => "nobody",
    };
    page.line("registered by", registrar);
    let segment = known(mechanism.segment_bytes.map(|bytes| bytes / 1024));
    page.line(
        "lanes",
        format!(
            "{} CPUs; a segment takes {segment} KiB of address space",
            mechanism.cpu_lanes
        ),
    );
    let rseq = &facts.rseq;
    page.line("rseq call", known(rseq.system_call.as_ref()));
    page.line(
        "rseq features",
        format!(
            "{} bytes, aligned to {}; the C library's __rseq_size is {}",
            known(rseq.feature_size_bytes),
            known(rseq.alignment_bytes),
            known(rseq.libc_size_bytes),
        ),
    );
    let commands = match facts.membarrier.commands.as_slice() {
        [] => "none".to_owned(),
        commands => commands.join(", "),
    };
    page.line("membarrier", commands);
    page.line("fence", &facts.membarrier.fence);
}

fn machine(page: &mut Page, facts: &Facts) {
    let machine = &facts.machine;
    page.section("Machine");
    page.line("CPU", known(machine.cpu_model.as_ref()));
    for flag in &facts.cpu_flags {
        let present = if flag.present { "yes" } else { "no" };
        page.line(flag.name, format!("{present}: {}", flag.matters));
    }
    page.line(
        "CPUs",
        format!(
            "possible {}, online {}, allowed {}",
            known(machine.cpus_possible.as_ref()),
            known(machine.cpus_online.as_ref()),
            known(machine.cpus_allowed.as_ref()),
        ),
    );
    let siblings = match machine.threads_per_core {
        Some(1) => "none: each allowed CPU has a core of its own".to_owned(),
        Some(threads) => format!("{threads} allowed CPUs to a core"),
        None => known::<&str>(None),
    };
    page.line("SMT siblings", siblings);
    for cache in &machine.caches {
        let level = format!(
            "L{} {}",
            known(cache.level),
            cache.kind.as_deref().unwrap_or("").to_lowercase()
        );
        page.line(
            &level,
            format!(
                "{}, shared by CPUs {}",
                known(cache.size.as_ref()),
                known(cache.cpus.as_ref())
            ),
        );
    }
    page.line(
        "kernel",
        format!(
            "{} {}",
            known(machine.os.as_ref()),
            known(machine.kernel.as_ref())
        ),
    );
    page.line("hypervisor", known(machine.hypervisor.as_ref()));
    page.line("governor", known(machine.governor.as_ref()));
}

fn clocks(page: &mut Page, facts: &Facts) {
    page.section("Clocks and counters");
    page.line("clock source", known(facts.machine.clocksource.as_ref()));
    let usable = if facts.clock.tsc_usable {
        "usable"
    } else {
        "not used"
    };
    page.line("TSC", format!("{usable}: {}", facts.clock.reason));
    page.line("perf cycles", known(facts.perf.cycles.as_ref()));
    page.line("perf instr.", known(facts.perf.instructions.as_ref()));
    page.line("perf paranoid", known(facts.perf.paranoid));
}

fn memory(page: &mut Page, facts: &Facts) {
    let memory = &facts.memory;
    page.section("Memory");
    page.line("page", format!("{} bytes", known(facts.machine.page_size)));
    let sizes: Vec<String> = memory
        .hugetlb_kib
        .iter()
        .map(|kib| format!("{kib} KiB"))
        .collect();
    page.line(
        "huge pages",
        format!(
            "transparent: {}; explicit: {}",
            known(facts.machine.transparent_hugepages.as_ref()),
            if sizes.is_empty() {
                "none".to_owned()
            } else {
                sizes.join(", ")
            },
        ),
    );
    let limit = memory
        .memlock_limit_bytes
        .map(|bytes| format!("{bytes} bytes"));
    page.line(
        "may be locked",
        limit.unwrap_or_else(|| "no limit known".to_owned()),
    );
    page.line("overcommit", known(memory.overcommit));
    page.line("memfd", known(memory.memfd.as_ref()));
}

fn known<T: Display>(fact: Option<T>) -> String {
    fact.map_or_else(|| "unknown".to_owned(), |fact| fact.to_string())
}

/// Text, as it grows.
#[derive(Default)]
struct Page(String);

/// Where values start.
const INDENT: usize = 16;

impl Page {
    fn section(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0 += title;
        self.0.push('\n');
    }

    fn line(&mut self, name: &str, value: impl Display) {
        let wrapped = wrap(&value.to_string(), INDENT + 2);
        let value = wrapped.trim_start();
        self.0 += &format!("  {name:<INDENT$}{value}");
    }

    /// A paragraph.
    fn text(&mut self, text: &str) {
        self.0 += &wrap(text, 2);
    }
}
