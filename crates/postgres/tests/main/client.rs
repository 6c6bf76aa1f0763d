//! A client that says what it is told to, message by message. What real ones do is tried with them.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A message of this kind.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind], length.as_slice(), body].concat()
}

/// The first words.
pub fn startup(user: &str) -> Vec<u8> {
    startup_with(user, &[])
}

/// The first words, with settings.
fn startup_with(user: &str, settings: &[(&str, &str)]) -> Vec<u8> {
    let settings: String = settings.iter().map(|(name, value)| format!("{name}\0{value}\0")).collect();
    let fields = format!("user\0{user}\0database\0any\0{settings}\0");
    let length = (fields.len() as u32 + 8).to_be_bytes();
    [length.as_slice(), &196_608u32.to_be_bytes(), fields.as_bytes()].concat()
}

/// An error: its code and its text.
pub type Refused = (String, String);

/// What a statement, or several, answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    pub tags: Vec<String>,
    pub copied: Vec<u8>,
    /// Messages that it came in.
    pub pieces: usize,
    pub suspended: usize,
    /// How often columns were described.
    pub described: usize,
    /// The columns as they were described last: names and types.
    pub columns: Vec<(String, u32)>,
    /// The types of parameters as they were described last.
    pub parameters: Vec<u32>,
    pub error: Option<Refused>,
    /// Schema, table, column and name of the rule that the error speaks of.
    pub rule: [String; 4],
    pub notices: Vec<String>,
    /// `I`, `T` or `E`.
    pub state: u8,
}

impl Answer {
    /// Rows of texts, for comparison.
    pub fn texts(&self) -> Vec<Vec<String>> {
        assert_eq!(self.error, None);
        let text = |cell: &Option<Vec<u8>>| match cell {
            Some(bytes) => String::from_utf8(bytes.clone()).expect("a text"),
            None => "NULL".into(),
        };
        self.rows.iter().map(|row| row.iter().map(text).collect()).collect()
    }

    pub fn code(&self) -> &str {
        self.error.as_ref().map_or("none", |(code, _)| code)
    }
}

/// What a client speaks through.
pub trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

/// What a client says of the channel.
#[derive(Clone, Copy)]
pub enum Channel<'a> {
    /// It knows nothing of binding it.
    Unknown,
    /// It could bind it, and was not told that the server can.
    NotOffered,
    /// It binds it to this.
    Bound(&'a [u8]),
}

/// A socket whose reads end.
pub fn socket(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a patience");
    stream
}

pub struct Client {
    stream: BufReader<Box<dyn Duplex>>,
    address: Option<SocketAddr>,
    pub number: [u8; 4],
    pub key: [u8; 4],
    /// Settings as they were reported last.
    pub reported: HashMap<String, String>,
    /// What it was told before its first statement.
    pub greeted: Vec<String>,
}

impl Client {
    /// Comes in, or is refused.
    pub fn connect(address: SocketAddr, user: &str, password: &str) -> Result<Client, Refused> {
        Client::connect_with(address, (user, password), &[])
    }

    /// The same with settings.
    pub fn connect_with(
        address: SocketAddr,
        (user, password): (&str, &str),
        settings: &[(&str, &str)],
    ) -> Result<Client, Refused> {
        let said = startup_with(user, settings);
        let client = Client::saying(socket(address), &said, password, Channel::Unknown)?;
        Ok(Client { address: Some(address), ..client })
    }

    /// What ends what it runs, from anywhere.
    pub fn cancellation(&self) -> impl Fn() + Send + 'static {
        let address = self.address.expect("an address");
        let head = [16u32.to_be_bytes(), 80_877_102u32.to_be_bytes()].concat();
        let request = [head.as_slice(), &self.number, &self.key].concat();
        move || {
            let mut socket = socket(address);
            socket.write_all(&request).expect("asked");
            // The server ends it when it has done so.
            socket.read_to_end(&mut Vec::new()).expect("done");
        }
    }

    /// The same over a stream that is there.
    pub fn over(
        stream: impl Duplex + 'static,
        user: &str,
        password: &str,
        channel: Channel<'_>,
    ) -> Result<Client, Refused> {
        Client::saying(stream, &startup(user), password, channel)
    }

    fn saying(
        stream: impl Duplex + 'static,
        first_words: &[u8],
        password: &str,
        channel: Channel<'_>,
    ) -> Result<Client, Refused> {
        let stream: BufReader<Box<dyn Duplex>> = BufReader::new(Box::new(stream));
        let (reported, greeted) = (HashMap::new(), Vec::new());
        let mut client = Client { stream, address: None, number: [0; 4], key: [0; 4], reported, greeted };
        client.send(first_words);
        let (header, end_point, mechanism): (_, &[u8], _) = match channel {
            Channel::Unknown => ("n,,", &[], "SCRAM-SHA-256"),
            Channel::NotOffered => ("y,,", &[], "SCRAM-SHA-256"),
            Channel::Bound(end_point) => ("p=tls-server-end-point,,", end_point, "SCRAM-SHA-256-PLUS"),
        };
        let (mut first, mut signature) = (String::new(), None);
        loop {
            let (kind, body) = client.receive();
            match (kind, body.get(..4)) {
                (b'R', Some([0, 0, 0, 10])) => {
                    let offered = String::from_utf8(body[4..].to_vec()).expect("a text");
                    assert!(["SCRAM-SHA-256\0\0", "SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"].contains(&&*offered));
                    let bare = format!("{header}{FIRST}");
                    let length = (bare.len() as u32).to_be_bytes();
                    let begun = [mechanism.as_bytes(), &[0], &length, bare.as_bytes()];
                    client.send(&message(b'p', &begun.concat()));
                }
                (b'R', Some([0, 0, 0, 11])) => {
                    first = String::from_utf8(body[4..].to_vec()).expect("a text");
                    let binding = BASE64.encode([header.as_bytes(), end_point].concat());
                    let (proof, expected) = prove(&first, &binding, password);
                    signature = Some(expected);
                    client.send(&message(b'p', proof.as_bytes()));
                }
                (b'R', Some([0, 0, 0, 12])) => {
                    assert_eq!(body[4..], *signature.clone().expect("a proof came before").as_bytes(), "{first}");
                }
                (b'R', Some([0, 0, 0, 0])) => {}
                (b'S', _) => client.hear_setting(&body),
                (b'N', _) => client.greeted.push(refused(&body).1),
                (b'K', _) => {
                    client.number.copy_from_slice(&body[..4]);
                    client.key.copy_from_slice(&body[4..]);
                }
                (b'Z', _) => return Ok(client),
                (b'E', _) => return Err(refused(&body)),
                (kind, _) => panic!("{} came in between", char::from(kind)),
            }
        }
    }

    fn hear_setting(&mut self, body: &[u8]) {
        let mut texts = body.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
        self.reported.extend(texts.next().zip(texts.next()));
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("sent");
    }

    fn receive(&mut self) -> (u8, Vec<u8>) {
        self.receive_or_end().expect("a message")
    }

    /// None where the server has ended the connection.
    fn receive_or_end(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).expect("all of it");
        Some((head[0], body))
    }

    /// Everything up to the next ReadyForQuery. What is copied in comes from `rows`, which is given up where there are none.
    pub fn answer(&mut self, rows: Option<&[u8]>) -> Answer {
        let mut answer = Answer::default();
        loop {
            let (kind, body) = self.receive();
            match kind {
                b'D' => answer.rows.push(cells(&body)),
                b'C' => answer.tags.push(String::from_utf8(body[..body.len() - 1].to_vec()).expect("a tag")),
                b'E' => {
                    answer.error = Some(refused(&body));
                    answer.rule = [b's', b't', b'c', b'n'].map(|wanted| field(&body, wanted));
                }
                b'N' => answer.notices.push(refused(&body).1),
                b'd' => {
                    answer.copied.extend(body);
                    answer.pieces += 1;
                }
                b'S' => self.hear_setting(&body),
                b's' => answer.suspended += 1,
                b'T' => {
                    answer.described += 1;
                    answer.columns = columns(&body);
                }
                b't' => answer.parameters = body[2..].chunks_exact(4).map(number).collect(),
                b'G' => {
                    let rows = rows.map_or(message(b'f', b"no more\0"), |rows| {
                        let mut pieces: Vec<u8> = rows.chunks(1000).flat_map(|piece| message(b'd', piece)).collect();
                        pieces.extend(message(b'c', b""));
                        pieces
                    });
                    self.send(&rows);
                }
                b'Z' => {
                    answer.state = body[0];
                    return answer;
                }
                _ => {}
            }
        }
    }

    /// What the server says last, before it ends the connection.
    pub fn last_words(&mut self) -> Answer {
        let mut answer = Answer::default();
        while let Some((kind, body)) = self.receive_or_end() {
            match kind {
                b'D' => answer.rows.push(cells(&body)),
                b'E' => answer.error = Some(refused(&body)),
                _ => {}
            }
        }
        answer
    }

    /// A simple query.
    pub fn ask(&mut self, sql: &str) -> Answer {
        self.send(&message(b'Q', format!("{sql}\0").as_bytes()));
        self.answer(None)
    }
}

fn cells(body: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut rest = &body[2..];
    let mut cells = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        cells.push(length.map(|length| behind[..length].to_vec()));
        rest = &behind[length.unwrap_or(0)..];
    }
    cells
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// Names and types of columns.
fn columns(body: &[u8]) -> Vec<(String, u32)> {
    let mut rest = &body[2..];
    let mut columns = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let name = String::from_utf8(rest[..end].to_vec()).expect("a name");
        columns.push((name, number(&rest[end + 7..end + 11])));
        rest = &rest[end + 19..];
    }
    columns
}

fn refused(body: &[u8]) -> Refused {
    (field(body, b'C'), field(body, b'M'))
}

/// A field of an error; empty where there is none.
fn field(body: &[u8], wanted: u8) -> String {
    let mut fields = body.split(|byte| *byte == 0).filter(|field| field.first() == Some(&wanted));
    fields.next().map(|field| String::from_utf8_lossy(&field[1..]).into_owned()).unwrap_or_default()
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// The first words of SCRAM-SHA-256, behind what they say of the channel.
const FIRST: &str = "n=,r=abcdefghijkl";

/// The last words, and what the server has to answer.
fn prove(first: &str, binding: &str, password: &str) -> (String, String) {
    let field = |name: &str| first.split(',').find_map(|field| field.strip_prefix(name)).expect("a field");
    let salt = BASE64.decode(field("s=")).expect("a salt");
    let mut salted = [0; 32];
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, field("i=").parse().expect("a number"), &mut salted);
    let client_key = mac(&salted, b"Client Key");
    let bare = format!("c={binding},r={}", field("r="));
    let exchange = format!("{FIRST},{first},{bare}");
    let signature = mac(&Sha256::digest(&client_key), exchange.as_bytes());
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, mask)| key ^ mask).collect();
    let expected = mac(&mac(&salted, b"Server Key"), exchange.as_bytes());
    (format!("{bare},p={}", BASE64.encode(proof)), format!("v={}", BASE64.encode(expected)))
}
