//! The inside of a message: read from front to back, each step looking at what is left.

/// A message that is not what its first byte says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    /// All of a message behind its length.
    pub fn new(bytes: &'a [u8]) -> Self {
        Body(bytes)
    }

    /// So many bytes.
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(bytes).ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(std::array::from_fn({
            let bytes = self.take(N)?;
            |at| bytes[at]
        }))
    }

    /// A byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    /// A number of two bytes.
    pub fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    /// A number of four bytes.
    pub fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// How many there are of something of which each takes at least so many bytes.
    pub fn count(&mut self, bytes_of_one: usize) -> Result<usize, Malformed> {
        let count = usize::from(self.array().map(u16::from_be_bytes)?);
        match count * bytes_of_one <= self.0.len() {
            true => Ok(count),
            false => Err(Malformed("it counts more than it has")),
        }
    }

    /// A text up to the zero that ends it.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Malformed("a text does not end"))?;
        let text = std::str::from_utf8(&self.0[..end]).map_err(|_| Malformed("a text is not UTF-8"))?;
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    /// A value: none for NULL.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.i32()? {
            -1 => Ok(None),
            length => self.take(usize::try_from(length).map_err(|_| Malformed("a length is negative"))?).map(Some),
        }
    }

    /// Whatever is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("something is left behind its end")) }
    }
}
