//! A real program to look at, and the command as a user types it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Rounds of each of the program's two threads.
pub(crate) const ROUNDS: u64 = 1000;

/// `examples/demo.rs`, counting or done with it.
#[derive(Debug)]
pub(crate) struct Demo(Child);

impl Demo {
    /// It has counted [`ROUNDS`] in each thread, and waits.
    pub(crate) fn done() -> Self {
        Self::start(command().arg(ROUNDS.to_string()))
    }

    /// It counts on.
    pub(crate) fn counting() -> Self {
        Self::start(command().arg("until-closed"))
    }

    /// It has counted in a region file.
    pub(crate) fn in_directory(directory: &Path) -> Self {
        let mut command = command();
        command.env("COUNTERSINK_DIR", directory);
        Self::start(command.arg(ROUNDS.to_string()))
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes
            .spawn()
            .expect("the demo is built: cargo build -p countersink-cli --example demo");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Demo(child)
    }

    pub(crate) fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Lets it end by itself.
    pub(crate) fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("it ends").success());
    }

    /// Leaves a core file, if it may.
    pub(crate) fn crash(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::ABORT).expect("sent");
        self.0.wait().expect("it ends");
    }

    /// As a crash would.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it lives");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The example, with a region of its own in memory.
fn command() -> Command {
    let mut command = Command::new(program());
    command
        .env_remove("COUNTERSINK_DIR")
        .env_remove("COUNTERSINK_REGION");
    command
}

/// The example, which is built with these tests.
pub(crate) fn program() -> PathBuf {
    let command = assert_cmd::cargo::cargo_bin("countersink");
    command.with_file_name("examples").join("demo")
}

/// `countersink` with these arguments, and no directory but the one that a test sets.
pub(crate) fn countersink(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("countersink"));
    command.args(arguments).env_remove("COUNTERSINK_DIR");
    command
}

/// Its status, standard output and standard error.
pub(crate) fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

/// What it prints when all is well.
pub(crate) fn printed(command: &mut Command) -> String {
    let (status, stdout, stderr) = run(command);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    stdout
}

/// The one sentence on standard error of what fails.
pub(crate) fn refused(command: &mut Command) -> String {
    let (status, stdout, stderr) = run(command);
    assert_eq!((status, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let sentence = stderr.trim_end().strip_prefix("countersink: ");
    sentence.expect("the program's name").to_owned()
}

pub(crate) fn json(command: &mut Command) -> serde_json::Value {
    serde_json::from_str(&printed(command)).expect("JSON")
}

/// The metric of a name in the first region of `show --json`.
pub(crate) fn metric<'a>(shown: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let metrics = shown["regions"][0]["metrics"].as_array().expect("metrics");
    let found = metrics.iter().find(|metric| metric["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {shown:#}"))
}

/// A folder that is closed to others, as that of region files has to be.
pub(crate) fn private_folder() -> tempfile::TempDir {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(mode).tempdir();
    folder.expect("a folder")
}

/// The path of the one file in a folder.
pub(crate) fn only_file(folder: &Path) -> String {
    let mut files = std::fs::read_dir(folder).expect("a folder");
    let file = files.next().expect("a file").expect("a file").path();
    assert!(files.next().is_none());
    file.to_str().expect("text").to_owned()
}

/// What a metric's line says behind its name, with single spaces.
pub(crate) fn line(text: &str, name: &str) -> String {
    let mut lines = text.lines();
    let line = lines.find(|line| line.split(' ').next() == Some(name));
    let words = line
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .split_whitespace();
    words.skip(1).collect::<Vec<_>>().join(" ")
}
