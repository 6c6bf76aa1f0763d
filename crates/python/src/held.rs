//! A thing that one thread at a time uses, and that may be closed.

use std::thread::{self, ThreadId};
use std::time::Duration;

use counterfoil::Error;
use parking_lot::Mutex;

use crate::errors::misuse;
use crate::waiting::{ended, is_called_off};

/// How often a thread that waits for its turn looks whether it was called off.
const TURN: Duration = Duration::from_millis(50);

/// A thing that one thread at a time uses. Its users must not be attached to the interpreter.
pub struct Held<T> {
    what: &'static str,
    /// In a child that was forked while a thread used the thing, nobody would ever let it go.
    process: u32,
    thing: Mutex<Option<T>>,
    user: Mutex<Option<ThreadId>>,
}

impl<T> Held<T> {
    /// Holds a thing; `what` names it in messages.
    pub fn new(what: &'static str, thing: T) -> Self {
        Self { what, process: std::process::id(), thing: Mutex::new(Some(thing)), user: Mutex::new(None) }
    }

    /// Uses it, when other threads are done with it. A signal ends the waiting.
    ///
    /// # Errors
    /// [`Kind::Misuse`] where this very thread is using it (a program that is asked for rows to be stored asks for others
    /// with the same connection), where it is closed, and in a child of the process that made it.
    pub fn with<R>(&self, body: impl FnOnce(&mut T) -> Result<R, Error>) -> Result<R, Error> {
        self.turn(|thing| match thing {
            Some(thing) => body(thing),
            None => Err(misuse(format!("the {} is closed", self.what))),
        })
    }

    /// Uses it if nobody else does, without waiting: this alone may be asked while attached, of what does not attach.
    pub fn at_once<R>(&self, body: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        self.thing.try_lock()?.as_mut().and_then(body)
    }

    /// Takes the thing out: it is closed for everybody else. None if it was.
    ///
    /// # Errors
    /// As [`Held::with`].
    pub fn take(&self) -> Result<Option<T>, Error> {
        self.turn(|thing| Ok(thing.take()))
    }

    fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    fn turn<R>(&self, body: impl FnOnce(&mut Option<T>) -> Result<R, Error>) -> Result<R, Error> {
        if self.is_forked() {
            let text = format!("the {} was made by the parent of this process", self.what);
            return Err(misuse(text).advise("open the database again in the child"));
        }
        let this = thread::current().id();
        if *self.user.lock() == Some(this) {
            let text = format!("the {} is in use by the statement that asks for this", self.what);
            return Err(misuse(text).advise("use another one"));
        }
        let mut thing = loop {
            match self.thing.try_lock_for(TURN) {
                Some(thing) => break thing,
                None if is_called_off() => return Err(ended()),
                None => {}
            }
        };
        let _user = User::enter(&self.user, this);
        body(&mut thing)
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        if self.is_forked() {
            // Its threads are not here, its locks are as they left them, and its file is the parent's to write.
            std::mem::forget(self.thing.get_mut().take());
        }
    }
}

/// Notes who uses a thing, and forgets it however that ends.
struct User<'a>(&'a Mutex<Option<ThreadId>>);

impl<'a> User<'a> {
    fn enter(user: &'a Mutex<Option<ThreadId>>, this: ThreadId) -> Self {
        *user.lock() = Some(this);
        Self(user)
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}
