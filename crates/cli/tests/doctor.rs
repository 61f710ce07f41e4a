//! `countersink doctor` as a user types it, on machines that lack something.

use std::process::{Command, Output};

fn doctor(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("countersink"));
    command.arg("doctor").args(arguments);
    command
}

fn text(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr, "");
    String::from_utf8(output.stdout).expect("text")
}

fn run(command: &mut Command) -> String {
    text(command.output().expect("it starts"))
}

fn fits_a_terminal(text: &str) {
    let wide: Vec<&str> = text
        .lines()
        .filter(|line| line.chars().count() > 100)
        .collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

fn json(command: &mut Command) -> serde_json::Value {
    serde_json::from_str(&run(command)).expect("JSON")
}

#[test]
fn it_has_its_sections_and_fits_a_terminal() {
    let text = run(&mut doctor(&[]));
    for section in [
        "Counting",
        "Machine",
        "Clocks and counters",
        "Memory",
        "Advice",
    ] {
        assert!(text.lines().any(|line| line == section), "{text}");
    }
    fits_a_terminal(&text);
}

#[test]
fn json_has_the_same_facts_as_numbers() {
    let facts = json(&mut doctor(&["--json"]));
    assert_eq!(facts["schema"], "countersink-doctor/1");
    assert!(
        facts["mechanism"]["sentence"]
            .as_str()
            .is_some_and(|text| text.contains("because"))
    );
    assert!(
        facts["mechanism"]["cpu_lanes"]
            .as_u64()
            .is_some_and(|lanes| lanes > 0)
    );
    let pins = cfg!(all(target_os = "linux", not(countersink_portable)));
    assert_eq!(facts["machine"]["cpus_allowed"].is_string(), pins);
    assert!(facts["advice"].is_array());
    for part in [
        "rseq",
        "membarrier",
        "machine",
        "clock",
        "perf",
        "memory",
        "unknown",
    ] {
        assert!(facts[part].is_object(), "{part}");
    }
}

/// Every `null` of these has its reason; the rest of the nulls are values.
#[test]
fn what_is_not_known_says_why() {
    let facts = json(&mut doctor(&["--json"]));
    for fact in [
        "clocksource",
        "governor",
        "cpus_possible",
        "cpus_allowed",
        "kernel",
    ] {
        let known = !facts["machine"][fact].is_null();
        let reason = facts["unknown"][format!("machine.{fact}")].as_str();
        assert_eq!(known, reason.is_none(), "{fact}: {reason:?}");
        assert!(reason.is_none_or(|reason| !reason.is_empty()), "{fact}");
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(countersink_portable)))]
mod linux {
    #![allow(unsafe_code)]

    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::{doctor, fits_a_terminal, json, run};

    /// With the line breaks gone, so that sentences can be looked for.
    fn prose(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_library_registers_threads_where_the_c_library_does_not() {
        let off = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        let facts = json(doctor(&["--json"]).env(off.0, off.1));
        assert_eq!(facts["mechanism"]["name"], "rseq");
        assert_eq!(facts["mechanism"]["registrar"], "own");
        let text = run(doctor(&[]).env(off.0, off.1));
        fits_a_terminal(&text);
        assert!(prose(&text).contains("this library, each thread"), "{text}");
    }

    #[test]
    fn a_sandbox_without_rseq_is_told_from_a_kernel_without_it() {
        for (error, reason) in [
            (libc::EPERM, "a filter (seccomp) refuses it"),
            (libc::ENOSYS, "does not have it"),
        ] {
            let facts = json(refuse_rseq(&mut doctor(&["--json"]), error));
            assert_eq!(facts["mechanism"]["name"], "locked_lanes");
            assert_eq!(facts["mechanism"]["refused_errno"], error);
            let text = run(refuse_rseq(&mut doctor(&[]), error));
            fits_a_terminal(&text);
            let text = prose(&text);
            assert!(
                text.contains("locked operations on per-CPU lanes, because the kernel refused")
            );
            assert!(text.contains(reason), "{text}");
            assert!(text.contains("seccomp profile"), "{text}");
        }
    }

    #[test]
    fn one_allowed_cpu_is_said() {
        let allowed = sched_getaffinity(None).expect("the allowed CPUs");
        let first = (0..CpuSet::MAX_CPU)
            .find(|cpu| allowed.is_set(*cpu))
            .expect("a CPU");
        let mut one = CpuSet::new();
        one.set(first);
        let mut command = doctor(&["--json"]);
        // SAFETY: a system call between fork and exec, which is all that may be done there.
        unsafe { command.pre_exec(move || Ok(sched_setaffinity(None, &one)?)) };
        let facts = json(&mut command);
        assert_eq!(facts["machine"]["cpus_allowed"], first.to_string());
        let advice = facts["advice"].as_array().expect("advice");
        assert!(
            advice
                .iter()
                .any(|a| a.as_str().is_some_and(|a| a.contains("one CPU only")))
        );
    }

    /// As `| true` does.
    #[test]
    fn a_reader_that_goes_away_is_no_failure() {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let output = doctor(&[])
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("it starts");
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }

    #[test]
    fn output_that_cannot_be_written_is_a_failure() {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("/dev/full");
        let output = doctor(&[])
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with("countersink: "), "{stderr}");
    }

    /// Puts the command under a filter that answers rseq with an error, as sandboxes do.
    fn refuse_rseq(command: &mut std::process::Command, error: i32) -> &mut std::process::Command {
        let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
        let answer = |value| statement(libc::BPF_RET | libc::BPF_K, value);
        let is_rseq = libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: libc::SYS_rseq as u32,
        };
        let filter = [
            load(0),
            is_rseq,
            answer(libc::SECCOMP_RET_ERRNO | error as u32),
            answer(libc::SECCOMP_RET_ALLOW),
        ];
        // SAFETY: system calls between fork and exec, with memory that the closure owns.
        unsafe {
            command.pre_exec(move || {
                let mut filter = filter;
                let program = libc::sock_fprog {
                    len: filter.len() as u16,
                    filter: filter.as_mut_ptr(),
                };
                if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                    || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) != 0
                {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            })
        }
    }

    fn statement(code: u32, k: u32) -> libc::sock_filter {
        libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf: 0,
            k,
        }
    }
}
