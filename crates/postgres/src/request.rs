//! What clients send once they are let in (PostgreSQL's documentation, "Message Formats").

use crate::body::{Body, Malformed};

/// A statement that was prepared, or a portal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// A statement.
    Statement(&'a str),
    /// A portal.
    Portal(&'a str),
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Run a text of statements.
    Query(&'a str),
    /// Prepare a statement: the types of its parameters, 0 where the server is to find out.
    Parse { name: &'a str, sql: &'a str, types: Vec<u32> },
    /// Make a portal of a statement: formats and values of its parameters, formats of its columns.
    Bind { portal: &'a str, statement: &'a str, formats: Vec<i16>, values: Vec<Option<&'a [u8]>>, wanted: Vec<i16> },
    /// Say what it takes and gives.
    Describe(Named<'a>),
    /// Run a portal, up to so many rows; 0 for all.
    Execute { portal: &'a str, rows_max: i32 },
    /// Forget it.
    Close(Named<'a>),
    /// End of a group of messages of which the first error drops the rest.
    Sync,
    /// Send what is ready.
    Flush,
    /// Good bye.
    Terminate,
    /// A piece of what is copied in.
    CopyData(&'a [u8]),
    /// All of it came.
    CopyDone,
    /// It will not come, and why.
    CopyFail(&'a str),
}

impl<'a> Request<'a> {
    /// Reads a message of this kind.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(kind: u8, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut body = Body::new(body);
        let request = match kind {
            b'Q' => Request::Query(body.text()?),
            b'P' => parse(&mut body)?,
            b'B' => bind(&mut body)?,
            b'D' => Request::Describe(named(&mut body)?),
            b'E' => Request::Execute { portal: body.text()?, rows_max: body.i32()? },
            b'C' => Request::Close(named(&mut body)?),
            b'S' => Request::Sync,
            b'H' => Request::Flush,
            b'X' => Request::Terminate,
            b'd' => Request::CopyData(body.rest()),
            b'c' => Request::CopyDone,
            b'f' => Request::CopyFail(body.text()?),
            b'F' => return Err(Malformed("calls of functions by number are not supported")),
            _ => return Err(Malformed("its kind is not known")),
        };
        body.end()?;
        Ok(request)
    }
}

fn parse<'a>(body: &mut Body<'a>) -> Result<Request<'a>, Malformed> {
    let (name, sql) = (body.text()?, body.text()?);
    let types = (0..body.count(4)?).map(|_| body.u32()).collect::<Result<_, _>>()?;
    Ok(Request::Parse { name, sql, types })
}

fn bind<'a>(body: &mut Body<'a>) -> Result<Request<'a>, Malformed> {
    let (portal, statement) = (body.text()?, body.text()?);
    let formats = formats(body)?;
    let values = (0..body.count(4)?).map(|_| body.value()).collect::<Result<Vec<_>, _>>()?;
    if formats.len() > 1 && formats.len() != values.len() {
        return Err(Malformed("it has another number of formats than of values"));
    }
    let wanted = self::formats(body)?;
    Ok(Request::Bind { portal, statement, formats, values, wanted })
}

/// 0 for text, 1 for binary.
fn formats(body: &mut Body<'_>) -> Result<Vec<i16>, Malformed> {
    let format = |body: &mut Body<'_>| match body.i16()? {
        format @ (0 | 1) => Ok(format),
        _ => Err(Malformed("a format is neither text nor binary")),
    };
    (0..body.count(2)?).map(|_| format(body)).collect()
}

fn named<'a>(body: &mut Body<'a>) -> Result<Named<'a>, Malformed> {
    match body.byte()? {
        b'S' => Ok(Named::Statement(body.text()?)),
        b'P' => Ok(Named::Portal(body.text()?)),
        _ => Err(Malformed("it names neither a statement nor a portal")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_whole_or_not_at_all() {
        let bind = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\0";
        let request = Request::read(b'B', bind).expect("a Bind");
        let values = vec![Some(b"ab".as_slice()), None];
        assert_eq!(request, Request::Bind { portal: "p", statement: "s", formats: vec![1], values, wanted: vec![0] });
        for length in 0..bind.len() {
            assert!(Request::read(b'B', &bind[..length]).is_err(), "{length} bytes");
        }
        assert!(Request::read(b'B', &[bind.as_slice(), b"x"].concat()).is_err(), "one byte more");
        assert!(Request::read(b'P', b"\0\0\xff\xff").is_err(), "65,535 types that are not there");
        assert!(Request::read(b'Q', b"SELECT \xff\0").is_err(), "no UTF-8");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_message_or_malformed(kind: u8, body: Vec<u8>) {
            let _ = Request::read(kind, &body);
        }
    }
}
