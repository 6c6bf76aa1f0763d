//! The first words: what protocol is spoken, and who is there.
//!
//! ```text
//! [SSLRequest or GSSENCRequest -> N]  StartupMessage -> SASL dialogue -> AuthenticationOk, settings, key to cancel with
//! CancelRequest -> nothing
//! ```

use std::collections::HashMap;

use counterfoil::{Database, Role};

use crate::body::{Body, Malformed};
use crate::limits::Limits;
use crate::scram::{Dialogue, MECHANISM};
use crate::sqlstate::{Refusal, Stopped};
use crate::wire::{Ended, Stream, Wire, put_text};

const CANCEL: u32 = 80_877_102;
const ENCRYPT: [u32; 2] = [80_877_103, 80_877_104];
const PROTOCOL: u32 = 3;
/// Requests for encryption that are answered: libpq asks for two sorts.
const ENCRYPTS_MAX: usize = 2;

/// Who came.
pub enum Guest {
    /// Somebody who has shown that it may come in.
    User(Role),
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
    /// Bounds.
    pub limits: Limits,
    /// Of this server alone: what salts of names that nobody has come from.
    pub secret: [u8; 32],
}

impl Porter {
    /// Hears the first words.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn hear<S: Stream>(&self, wire: &mut Wire<S>) -> Result<Guest, Stopped> {
        for _ in 0..=ENCRYPTS_MAX {
            wire.unframed(self.limits.greeting_bytes_max)?;
            let mut body = Body::new(wire.body());
            match body.u32()? {
                CANCEL => {
                    let (number, key) = (body.u32()?, body.u32()?.to_be_bytes());
                    body.end()?;
                    return Ok(Guest::Canceller { number, key });
                }
                code if ENCRYPT.contains(&code) => wire.send_byte(b'N')?,
                code if code >> 16 == PROTOCOL => return self.greet(wire, code).map(Guest::User),
                code => {
                    let text = format!("protocol {}.{} is not spoken here: use 3.0", code >> 16, code & 0xffff);
                    return Err(Stopped::Refused(Refusal::fatal("0A000", text)));
                }
            }
        }
        Err(Stopped::Refused(Refusal::malformed("encryption is asked for again and again")))
    }

    fn greet<S: Stream>(&self, wire: &mut Wire<S>, code: u32) -> Result<Role, Stopped> {
        let first = wire.take_body();
        let (user, unknown) = startup(&first)?;
        if code & 0xffff > 0 || !unknown.is_empty() {
            negotiate(wire, &unknown)?;
        }
        let role = if self.asks_who { self.authenticate(wire, &user)? } else { Role::Writer };
        wire.send(b'R', |out| out.extend_from_slice(&0u32.to_be_bytes()))?;
        wire.let_in();
        Ok(role)
    }

    fn authenticate<S: Stream>(&self, wire: &mut Wire<S>, user: &str) -> Result<Role, Stopped> {
        let refused = |_| self.refused();
        let scram = self.database.users().scram(user, &self.secret)?;
        wire.send(b'R', |out| {
            out.extend_from_slice(&10u32.to_be_bytes());
            put_text(out, MECHANISM);
            out.push(0);
        })?;
        let body = self.password(wire)?;
        let first = initial(&body)?;
        let ours = counterfoil::random()?;
        let (dialogue, answer) = Dialogue::begin(scram, first, ours).map_err(refused)?;
        sasl(wire, 11, &answer)?;
        let (role, answer) = dialogue.finish(&self.password(wire)?).map_err(refused)?;
        sasl(wire, 12, &answer)?;
        Ok(role)
    }

    fn password<S: Stream>(&self, wire: &mut Wire<S>) -> Result<Vec<u8>, Stopped> {
        match wire.next_of_stranger(self.limits.greeting_bytes_max)? {
            b'p' => Ok(wire.take_body()),
            _ => Err(Stopped::Refused(Refusal::malformed("it is no answer to who is there"))),
        }
    }

    /// The same for a wrong password, a wrong name and a dialogue that makes no sense, and after a while: guessing takes time.
    fn refused(&self) -> Stopped {
        std::thread::sleep(self.limits.refusal_delay);
        Stopped::Refused(Refusal::fatal("28P01", "nobody with this name and password may come in"))
    }
}

fn sasl<S: Stream>(wire: &mut Wire<S>, step: u32, text: &str) -> Result<(), Ended> {
    wire.send(b'R', |out| {
        out.extend_from_slice(&step.to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    })
}

/// The client's first words of the dialogue.
fn initial(body: &[u8]) -> Result<&[u8], Stopped> {
    let mut body = Body::new(body);
    if body.text()? != MECHANISM {
        return Err(Stopped::Refused(Refusal::fatal("28000", format!("only {MECHANISM} is understood"))));
    }
    let first = body.value()?.ok_or(Malformed("it says nothing of who is there"))?;
    body.end()?;
    Ok(first)
}

/// Who says to be there, and the extensions of the protocol that were asked for: none is known.
fn startup(bytes: &[u8]) -> Result<(String, Vec<String>), Stopped> {
    let mut body = Body::new(bytes);
    body.u32()?;
    let mut said = HashMap::new();
    loop {
        let name = body.text()?;
        if name.is_empty() {
            break;
        }
        said.insert(name.to_owned(), body.text()?.to_owned());
    }
    body.end()?;
    let user = said.remove("user").ok_or(Malformed("it names no user"))?;
    let unknown = said.into_keys().filter(|name| name.starts_with("_pq_.")).collect();
    Ok((user, unknown))
}

/// Says what of a newer protocol is not spoken.
fn negotiate<S: Stream>(wire: &mut Wire<S>, unknown: &[String]) -> Result<(), Ended> {
    wire.send(b'v', |out| {
        out.extend_from_slice(&(PROTOCOL << 16).to_be_bytes());
        out.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
        unknown.iter().for_each(|name| put_text(out, name));
    })
}
