//! Processes of their own: the test program executes itself again, with only the test `act` selected
//! and the name of what it is to do in the environment.
//!
//! A child tells by lines `@key value`, and is told by lines on its standard input.
#![allow(unsafe_code)]

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};

/// A name, and what is done under it.
pub(crate) type Act = (&'static str, fn());

const ACT: &str = "COUNTERSINK_TEST_ACT";
const ARGUMENT: &str = "COUNTERSINK_TEST_ARGUMENT";
/// After so many seconds a child that hangs is killed.
const MOST_SECONDS: u32 = 40;

/// Does what the environment names, and ends the process.
pub(crate) fn act(acts: &[&[Act]]) {
    let Ok(name) = std::env::var(ACT) else {
        return;
    };
    // SAFETY: no preconditions; the signal's default is to kill.
    unsafe { libc::alarm(MOST_SECONDS) };
    let found = acts.iter().copied().flatten().find(|act| act.0 == name);
    found.unwrap_or_else(|| panic!("no act {name}")).1();
    tell("done", "");
    std::process::exit(0);
}

/// The child's argument; empty if it has none.
pub(crate) fn argument() -> String {
    std::env::var(ARGUMENT).unwrap_or_default()
}

/// Tells the parent.
pub(crate) fn tell(key: &str, value: impl Display) {
    // In one piece, and not through the test harness's capture.
    let line = format!("\n@{key} {value}\n");
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

/// Waits for the parent's next line.
pub(crate) fn listen() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    line.trim_end().to_owned()
}

/// A child that is to be started.
pub(crate) struct Child(Command);

/// One that runs.
pub(crate) struct Live {
    process: std::process::Child,
    out: BufReader<std::process::ChildStdout>,
    told: String,
}

/// What became of one.
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    /// All that it printed.
    pub(crate) text: String,
}

impl Child {
    pub(crate) fn new(name: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["--exact", "act", "--nocapture", "--test-threads=1"]);
        command.env(ACT, name);
        for variable in ["COUNTERSINK_DIR", "COUNTERSINK_REGION", "GLIBC_TUNABLES"] {
            command.env_remove(variable);
        }
        Child(command)
    }

    pub(crate) fn argument(mut self, argument: impl Display) -> Self {
        self.0.env(ARGUMENT, argument.to_string());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    pub(crate) fn start(mut self) -> Live {
        self.0.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = self.0.spawn().expect("the test program starts again");
        let out = BufReader::new(process.stdout.take().expect("a pipe"));
        Live {
            process,
            out,
            told: String::new(),
        }
    }

    /// Runs to a good end.
    pub(crate) fn run(self) -> Outcome {
        let outcome = self.start().end();
        assert!(
            outcome.status.success(),
            "{}: {}",
            outcome.status,
            outcome.text
        );
        outcome.value("done");
        outcome
    }
}

impl Live {
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until the child tells this; the value.
    pub(crate) fn hear(&mut self, key: &str) -> String {
        let begin = format!("@{key} ");
        loop {
            let mut line = String::new();
            let read = self.out.read_line(&mut line).expect("text");
            assert!(
                read > 0,
                "the child ended before it told {key}: {}",
                self.told
            );
            self.told += &line;
            if let Some(value) = line.strip_prefix(&begin) {
                return value.trim_end().to_owned();
            }
        }
    }

    pub(crate) fn say(&mut self, text: &str) {
        let pipe = self.process.stdin.as_mut().expect("a pipe");
        writeln!(pipe, "{text}").expect("the child listens");
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("our child");
    }

    /// Waits for the end, whatever it is.
    pub(crate) fn end(mut self) -> Outcome {
        drop(self.process.stdin.take());
        self.out.read_to_string(&mut self.told).expect("text");
        Outcome {
            status: self.process.wait().expect("our child"),
            text: self.told,
        }
    }

    /// Waits for a good end.
    pub(crate) fn finish(self) -> Outcome {
        let outcome = self.end();
        assert!(
            outcome.status.success(),
            "{}: {}",
            outcome.status,
            outcome.text
        );
        outcome
    }
}

impl Outcome {
    /// What the child told last under this key.
    pub(crate) fn value(&self, key: &str) -> &str {
        let begin = format!("@{key} ");
        let lines = self.text.lines();
        let value = lines
            .filter_map(|line| line.strip_prefix(&begin))
            .next_back();
        value.unwrap_or_else(|| panic!("{key} was not told: {}", self.text))
    }

    /// What was told, in a line.
    pub(crate) fn last_lines(&self) -> String {
        let lines = self.text.lines().filter_map(|line| line.strip_prefix('@'));
        lines.collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn number(&self, key: &str) -> u64 {
        self.value(key).parse().expect("a number")
    }
}

/// Whether this is root; prints what is not tested otherwise.
pub(crate) fn is_root(what: &str) -> bool {
    // SAFETY: no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        println!("NOT TESTED without root: {what}");
    }
    root
}
