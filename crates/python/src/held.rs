//! A thing that one thread at a time uses, and that may be closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use counterfoil::{Error, Kind};
use parking_lot::Mutex;

use crate::errors::misuse;

/// How often a thread that waits for its turn looks whether it was called off.
const TURN: Duration = Duration::from_millis(50);

/// A thing that one thread at a time uses. Its users must not be attached to the interpreter.
pub struct Held<T> {
    what: &'static str,
    thing: Mutex<Option<T>>,
    user: Mutex<Option<ThreadId>>,
}

impl<T> Held<T> {
    /// Holds a thing; `what` names it in messages.
    pub fn new(what: &'static str, thing: T) -> Self {
        Self { what, thing: Mutex::new(Some(thing)), user: Mutex::new(None) }
    }

    /// Uses it, when other threads are done with it. `called_off` ends the waiting.
    ///
    /// # Errors
    /// [`Kind::Misuse`] where this very thread is using it (a program that is asked for rows to be stored asks for others
    /// with the same connection), and where it is closed.
    pub fn with<R>(&self, called_off: &AtomicBool, body: impl FnOnce(&mut T) -> Result<R, Error>) -> Result<R, Error> {
        self.turn(called_off, |thing| match thing {
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
    pub fn take(&self, called_off: &AtomicBool) -> Result<Option<T>, Error> {
        self.turn(called_off, |thing| Ok(thing.take()))
    }

    fn turn<R>(
        &self,
        called_off: &AtomicBool,
        body: impl FnOnce(&mut Option<T>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let this = thread::current().id();
        if *self.user.lock() == Some(this) {
            let text = format!("the {} is in use by the statement that asks for this", self.what);
            return Err(misuse(text).advise("use another one"));
        }
        let mut thing = loop {
            match self.thing.try_lock_for(TURN) {
                Some(thing) => break thing,
                None if called_off.load(Ordering::Relaxed) => {
                    return Err(Error::new(Kind::Interrupted, "interrupted"));
                }
                None => {}
            }
        };
        let _user = User::enter(&self.user, this);
        body(&mut thing)
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
