//! What is said on standard error, what is asked on a terminal, and what an interruption does.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use counterfoil::{Error, Secret};
use nix::sys::termios::{self, LocalFlags, SetArg, SpecialCharacterIndices, Termios};

use crate::arguments::Color;
use crate::failure::misuse;

static QUIET: AtomicBool = AtomicBool::new(false);
static COLORED: AtomicBool = AtomicBool::new(false);
type Cancel = Box<dyn Fn() + Send>;
static CANCEL: Mutex<Option<Cancel>> = Mutex::new(None);
/// What an interruption comes to, in the command that is running.
static INTERRUPTED: Mutex<&str> = Mutex::new("what was not committed is not kept");
static LEFT_BEHIND: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Keeps the system from writing a core dump of a process that holds keys and rows in the clear.
pub fn refuse_core_dumps() {
    // Where it cannot be asked for, everything else still holds.
    let _ = nix::sys::prctl::set_dumpable(false);
}

/// Settles how much is said, in which colours, and that Ctrl-C ends the program.
pub fn prepare(quiet: bool, color: Color) {
    QUIET.store(quiet, Ordering::Relaxed);
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colored = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => io::stderr().is_terminal() && !plain,
    };
    COLORED.store(colored, Ordering::Relaxed);
    // Without a handler Ctrl-C still ends the program, only less politely.
    let _ = ctrlc::set_handler(interrupted);
}

/// Ends the program, unless a statement in the shell takes the interruption. Ending is safe at any moment: what is not
/// committed is not there.
fn interrupted() {
    let cancel = CANCEL.lock().unwrap_or_else(PoisonError::into_inner);
    match &*cancel {
        Some(cancel) => cancel(),
        None => {
            let line_end = if io::stderr().is_terminal() { "\n" } else { "" };
            let meaning = *INTERRUPTED.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writeln!(io::stderr(), "{line_end}error: interrupted: {meaning}");
            for path in LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            }
            std::process::exit(130);
        }
    }
}

/// What to say of an interruption from now on, for commands that commit nothing.
pub fn when_interrupted(meaning: &'static str) {
    *INTERRUPTED.lock().unwrap_or_else(PoisonError::into_inner) = meaning;
}

/// A file or a folder that an interruption takes away: it ends the program without cleaning up.
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Begins; dropping it ends it.
    pub fn at(path: &Path) -> Self {
        LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// A number of things, such as `1 row` or `2 rows`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// While it lives, Ctrl-C calls a function instead of ending the program.
pub struct Cancelling(());

impl Cancelling {
    /// Begins.
    pub fn with(cancel: impl Fn() + Send + 'static) -> Self {
        *CANCEL.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(cancel));
        Self(())
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        *CANCEL.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn say(kind: &str, color: &str, what: impl std::fmt::Display) {
    let mut stderr = io::stderr().lock();
    // There is nowhere left to complain when standard error is gone.
    let _ = if COLORED.load(Ordering::Relaxed) {
        writeln!(stderr, "\x1b[1;{color}m{kind}:\x1b[0m {what}")
    } else {
        writeln!(stderr, "{kind}: {what}")
    };
}

/// `error: …` on standard error.
pub fn error(what: impl std::fmt::Display) {
    say("error", "31", what);
}

/// `note: …` on standard error, unless quiet.
pub fn note(what: impl std::fmt::Display) {
    if !is_quiet() {
        say("note", "36", what);
    }
}

/// `note: …` on standard error even if quiet: what must not be missed.
pub fn warning(what: impl std::fmt::Display) {
    say("note", "33", what);
}

/// Whether only results and errors are wanted.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether a progress bar can be seen.
pub fn shows_progress() -> bool {
    !is_quiet() && io::stderr().is_terminal()
}

/// The terminal that answers questions, if there is one.
enum Asked {
    Input(io::Stdin),
    Terminal(File),
}

impl Asked {
    fn find() -> Option<Self> {
        if io::stdin().is_terminal() {
            return Some(Asked::Input(io::stdin()));
        }
        if io::stderr().is_terminal() {
            return File::open("/dev/tty").ok().map(Asked::Terminal);
        }
        None
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Asked::Input(stdin) => stdin.as_fd(),
            Asked::Terminal(file) => file.as_fd(),
        }
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut one = [0];
        let read = match self {
            Asked::Input(stdin) => stdin.lock().read(&mut one)?,
            Asked::Terminal(file) => file.read(&mut one)?,
        };
        Ok((read == 1).then_some(one[0]))
    }
}

/// Whether a person is there: to answer, and to see what is shown once.
pub fn is_watched() -> bool {
    io::stderr().is_terminal() && can_ask()
}

/// What was done, on standard error unless quiet: results alone go to standard output.
pub fn done(what: impl std::fmt::Display) {
    if !is_quiet() {
        show(what);
    }
}

/// Something to be seen by a person, and by nobody who only gets the results.
pub fn show(what: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Whether a question can be asked.
pub fn can_ask() -> bool {
    Asked::find().is_some()
}

/// Asks for a secret without showing it.
pub fn ask_secret(question: &str) -> Result<Secret, Error> {
    let asked = Asked::find().ok_or_else(|| misuse("there is no terminal to ask on"))?;
    let before = termios::tcgetattr(asked.descriptor()).map_err(|_| misuse("there is no terminal to ask on"))?;
    let mut silent = before.clone();
    // Keys are read one by one, so that Ctrl-C restores the terminal before it ends the program.
    silent.local_flags.remove(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG);
    silent.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
    silent.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
    let mut silenced = Silenced { asked, before };
    termios::tcsetattr(silenced.asked.descriptor(), SetArg::TCSADRAIN, &silent)
        .map_err(|_| misuse("there is no terminal to ask on"))?;
    let _ = write!(io::stderr(), "{question}: ");
    let _ = io::stderr().flush();
    let typed = silenced.line();
    let _ = writeln!(io::stderr());
    drop(silenced);
    match typed? {
        Some(secret) => Ok(secret),
        None => {
            error("interrupted: nothing was done");
            std::process::exit(130);
        }
    }
}

/// A terminal that shows nothing, until dropped.
struct Silenced {
    asked: Asked,
    before: Termios,
}

impl Drop for Silenced {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(self.asked.descriptor(), SetArg::TCSADRAIN, &self.before);
    }
}

impl Silenced {
    /// A line as typed; none after Ctrl-C or at the end of input.
    fn line(&mut self) -> Result<Option<Secret>, Error> {
        // Reserved once: a buffer that grows would leave pieces of the secret behind.
        let mut typed = Secret::with_room(SECRET_BYTES_MAX);
        loop {
            let byte = self.asked.byte().map_err(|error| Error::host("read from the terminal", "terminal", &error))?;
            match byte {
                None | Some(3 | 4) => return Ok(None),
                Some(b'\r' | b'\n') => return Ok(Some(typed)),
                Some(8 | 127) => typed.pop_letter(),
                Some(21) => typed.clear(),
                Some(_) if typed.as_bytes().len() >= SECRET_BYTES_MAX => {
                    return Err(misuse(format!("more than {SECRET_BYTES_MAX} bytes were typed")));
                }
                Some(byte) => typed.push(byte),
            }
        }
    }
}

const SECRET_BYTES_MAX: usize = 1024;

/// Asks a question that is answered by yes or no.
pub fn confirm(question: &str) -> Result<bool, Error> {
    let Some(mut asked) = Asked::find() else {
        return Err(misuse("there is no terminal to ask on").advise("add --yes"));
    };
    let _ = write!(io::stderr(), "{question} [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = Vec::new();
    while let Some(byte) = asked.byte().map_err(|error| Error::host("read from the terminal", "terminal", &error))? {
        if byte == b'\n' {
            break;
        }
        answer.push(byte);
    }
    Ok(matches!(answer.trim_ascii(), b"y" | b"Y" | b"yes" | b"Yes"))
}

/// A sign of life beside work whose length nobody knows. Gone when dropped.
pub struct Working(indicatif::ProgressBar);

impl Working {
    /// Begins.
    pub fn begin(doing: &'static str) -> Self {
        let bar =
            if shows_progress() { indicatif::ProgressBar::new_spinner() } else { indicatif::ProgressBar::hidden() };
        bar.set_message(doing);
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Self(bar)
    }
}

impl Working {
    /// Has it say how many there are so far of what is counted. Says that the work goes on: an interruption ends the program.
    pub fn count(&self, what: &'static str) -> Box<dyn FnMut(u64) -> bool + Send> {
        let bar = self.0.clone();
        Box::new(move |count| {
            bar.set_message(counted(count, what));
            true
        })
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
