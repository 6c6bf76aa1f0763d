//! The first words: what protocol is spoken, and who is there.
//!
//! ```text
//! [GSSENCRequest -> N]  [SSLRequest -> S, handshake; or N]  StartupMessage -> SASL dialogue -> AuthenticationOk, settings, key to cancel with
//! CancelRequest -> nothing
//! ```
//! Clients of PostgreSQL 17 and later may begin with the handshake itself.

use counterfoil::Database;

use crate::body::{Body, Malformed};
use crate::budget::Held;
use crate::first_words::FirstWords;
use crate::limits::Limits;
use crate::pass::Pass;
use crate::scram::{Channel, Dialogue, Failed, MECHANISM, MECHANISM_BOUND};
use crate::sqlstate::{Refusal, Stopped};
use crate::tls::{self, Tls};
use crate::wire::{Ended, Stream, Wire, put_text};

const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const PROTOCOL: u32 = 3;
/// Requests for encryption that are answered: libpq asks for two sorts.
const ENCRYPTS_MAX: usize = 2;

/// Who came.
pub enum Guest {
    /// Somebody who has shown that it may come in.
    User {
        /// Why it may.
        pass: Pass,
        /// Settings as it wants them.
        settings: Vec<(String, String)>,
    },
    /// Somebody who wants the statement of this connection ended.
    Canceller {
        /// The connection.
        number: u32,
        /// What it was told to cancel with.
        key: [u8; 4],
    },
}

/// What a server knows about asking who is there.
pub struct Porter {
    /// The database whose users come.
    pub database: Database,
    /// Whether anybody is asked.
    pub asks_who: bool,
    /// What is shown to whoever asks for TLS.
    pub tls: Option<Tls>,
    /// Bounds.
    pub limits: Limits,
}

impl Porter {
    /// Hears the first words.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn hear<S: Stream>(&self, wire: &mut Wire<S>) -> Result<Guest, Stopped> {
        if let Some(tls) = &self.tls
            && wire.first()? == tls::HANDSHAKE
        {
            wire.secure(tls, true)?;
        }
        for _ in 0..=ENCRYPTS_MAX {
            wire.unframed(self.limits.greeting_bytes_max)?;
            let mut body = Body::new(wire.body());
            match body.u32()? {
                CANCEL => {
                    let (number, key) = (body.u32()?, body.u32()?.to_be_bytes());
                    body.end()?;
                    return Ok(Guest::Canceller { number, key });
                }
                TLS | GSS if wire.is_secure() => break,
                TLS => self.secure(wire)?,
                GSS => wire.send_byte(b'N')?,
                code if code >> 16 == PROTOCOL => return self.greet(wire, code),
                code => {
                    let text = format!("protocol {}.{} is not spoken here: use 3.0", code >> 16, code & 0xffff);
                    return Err(Stopped::Refused(Refusal::fatal("0A000", text)));
                }
            }
        }
        Err(Stopped::Refused(Refusal::malformed("encryption is asked for again and again")))
    }

    fn secure<S: Stream>(&self, wire: &mut Wire<S>) -> Result<(), Ended> {
        let Some(tls) = &self.tls else { return wire.send_byte(b'N') };
        wire.send_byte(b'S')?;
        wire.secure(tls, false)
    }

    fn greet<S: Stream>(&self, wire: &mut Wire<S>, code: u32) -> Result<Guest, Stopped> {
        if wire.is_exposed() {
            let text =
                "from another machine only TLS is taken: ask for it with sslmode=verify-full, or require at least";
            return Err(Refusal::fatal("28000", text).into());
        }
        let first = wire.take_body();
        let FirstWords { user, settings, unknown } = FirstWords::read(&first)?;
        if code & 0xffff > 0 || !unknown.is_empty() {
            negotiate(wire, &unknown)?;
        }
        let pass = if self.asks_who { self.authenticate(wire, &user)? } else { Pass::of_anybody() };
        wire.send(b'R', |out| out.extend_from_slice(&0u32.to_be_bytes()))?;
        wire.let_in()?;
        Ok(Guest::User { pass, settings })
    }

    fn authenticate<S: Stream>(&self, wire: &mut Wire<S>, user: &str) -> Result<Pass, Stopped> {
        let refused = |failed| self.refused(failed);
        let users = self.database.users();
        let scram = users.scram(user)?;
        let end_point = self.tls.as_ref().filter(|_| wire.is_secure()).and_then(Tls::end_point);
        wire.send(b'R', |out| {
            out.extend_from_slice(&10u32.to_be_bytes());
            if end_point.is_some() {
                put_text(out, MECHANISM_BOUND);
            }
            put_text(out, MECHANISM);
            out.push(0);
        })?;
        let body = self.password(wire)?;
        let (channel, first) = initial(&body, end_point)?;
        let ours = counterfoil::random()?;
        let (dialogue, answer) = Dialogue::begin(scram, channel, first, ours).map_err(refused)?;
        sasl(wire, 11, &answer)?;
        let answer = dialogue.finish(&self.password(wire)?).map_err(refused)?;
        let pass = Pass::of(users, user)?.ok_or_else(|| self.refused(Failed::Proof))?;
        sasl(wire, 12, &answer)?;
        Ok(pass)
    }

    fn password<S: Stream>(&self, wire: &mut Wire<S>) -> Result<Held, Stopped> {
        match wire.next_of_stranger(self.limits.greeting_bytes_max)? {
            b'p' => Ok(wire.take_body()),
            _ => Err(Stopped::Refused(Refusal::malformed("it is no answer to who is there"))),
        }
    }

    /// The same for a wrong password, a wrong name and a dialogue that makes no sense, and after a while: guessing takes time.
    fn refused(&self, failed: Failed) -> Stopped {
        std::thread::sleep(self.limits.refusal_delay);
        Stopped::Refused(match failed {
            Failed::Proof => Refusal::fatal("28P01", "nobody with this name and password may come in"),
            Failed::Channel => Refusal::fatal(
                "28000",
                "the client was not told that channels are bound here: somebody may stand between",
            ),
        })
    }
}

fn sasl<S: Stream>(wire: &mut Wire<S>, step: u32, text: &str) -> Result<(), Ended> {
    wire.send(b'R', |out| {
        out.extend_from_slice(&step.to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    })
}

/// The client's first words of the dialogue, and what it has to say of the channel.
fn initial<'a>(body: &'a [u8], end_point: Option<&'a [u8]>) -> Result<(Channel<'a>, &'a [u8]), Stopped> {
    let mut body = Body::new(body);
    let channel = match (body.text()?, end_point) {
        (MECHANISM, None) => Channel::Unbound,
        (MECHANISM, Some(_)) => Channel::MayBeBound,
        (MECHANISM_BOUND, Some(end_point)) => Channel::Bound(end_point),
        _ => return Err(Stopped::Refused(Refusal::fatal("28000", format!("only {MECHANISM} is understood")))),
    };
    let first = body.value()?.ok_or(Malformed("it says nothing of who is there"))?;
    body.end()?;
    Ok((channel, first))
}

/// Says what of a newer protocol is not spoken.
fn negotiate<S: Stream>(wire: &mut Wire<S>, unknown: &[String]) -> Result<(), Ended> {
    wire.send(b'v', |out| {
        out.extend_from_slice(&(PROTOCOL << 16).to_be_bytes());
        out.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
        unknown.iter().for_each(|name| put_text(out, name));
    })
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, Read, Write};

    use counterfoil::Options;

    use super::*;
    use crate::budget::Budget;

    /// A client somewhere, that says this.
    struct Somebody {
        says: Cursor<Vec<u8>>,
        is_local: bool,
        is_secure: bool,
    }

    impl Read for Somebody {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.says.read(buffer)
        }
    }

    impl Write for Somebody {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Stream for Somebody {
        fn be_patient(&self, _: bool) -> io::Result<()> {
            Ok(())
        }

        fn let_in(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn first(&mut self) -> io::Result<Option<u8>> {
            Ok(self.says.get_ref().first().copied())
        }

        fn secure(&mut self, _: &Tls, _: bool) -> io::Result<()> {
            self.is_secure = true;
            Ok(())
        }

        fn is_secure(&self) -> bool {
            self.is_secure
        }

        fn is_local(&self) -> bool {
            self.is_local
        }

        fn close(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// How somebody who asks for TLS so often, and names itself then, comes in.
    fn heard(is_local: bool, asks: usize) -> Result<Guest, Stopped> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");
        let tls = Tls::from_files(format!("{folder}pkcs8.pem"), format!("{folder}pkcs8.key")).expect("a certificate");
        let database = Database::create(Options::memory()).expect("a database");
        let limits = Limits::default();
        let porter = Porter { database, asks_who: false, tls: Some(tls), limits };
        let ask = [8u32.to_be_bytes(), TLS.to_be_bytes()].concat();
        let startup = [&16u32.to_be_bytes()[..], &(PROTOCOL << 16).to_be_bytes(), b"user\0a\0"].concat();
        // Each request comes alone, as from a client that waits for its answer.
        let says = if asks > 0 { ask.repeat(asks) } else { [startup, vec![0]].concat() };
        let somebody = Somebody { says: Cursor::new(says), is_local, is_secure: false };
        porter.hear(&mut Wire::new(somebody, Budget::new(0, 1 << 16)))
    }

    #[test]
    fn nobody_comes_in_clear_from_another_machine() {
        assert!(matches!(heard(true, 0), Ok(Guest::User { .. })));
        let refused = heard(false, 0).err().map(|stopped| format!("{stopped:?}"));
        assert!(refused.is_some_and(|text| text.contains("28000") && text.contains("only TLS is taken")));
    }

    #[test]
    fn requests_that_come_together_are_not_taken_for_each_other() {
        assert!(matches!(heard(true, 2), Err(Stopped::Ended(Ended::Gone))));
    }
}
