//! JSON (RFC 8259) as this library writes it: what it has counted, and what it tells when it is asked. Needs no memory of its own, so that a line
//! can be written as the process ends.

use core::fmt::{Display, Result, Write};

/// An object that is being written.
pub struct Object<'a> {
    out: &'a mut dyn Write,
    begun: bool,
}

/// Writes an object with the members that `members` adds.
pub fn object(out: &mut dyn Write, members: impl FnOnce(&mut Object<'_>) -> Result) -> Result {
    out.write_char('{')?;
    let mut object = Object { out, begun: false };
    members(&mut object)?;
    object.out.write_char('}')
}

impl Object<'_> {
    /// The name is a constant of ours, which needs no escapes.
    fn name(&mut self, name: &str) -> Result {
        if core::mem::replace(&mut self.begun, true) {
            self.out.write_char(',')?;
        }
        write!(self.out, "\"{name}\":")
    }

    pub fn number(&mut self, name: &str, value: impl Display) -> Result {
        self.name(name)?;
        write!(self.out, "{value}")
    }

    pub fn flag(&mut self, name: &str, value: bool) -> Result {
        self.number(name, value)
    }

    pub fn text(&mut self, name: &str, value: &[u8]) -> Result {
        self.name(name)?;
        text(self.out, value)
    }

    pub fn object(
        &mut self,
        name: &str,
        members: impl FnOnce(&mut Object<'_>) -> Result,
    ) -> Result {
        self.name(name)?;
        object(self.out, members)
    }

    /// A list, of whose elements `write` writes one each.
    pub fn list<T>(
        &mut self,
        name: &str,
        all: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut dyn Write, T) -> Result,
    ) -> Result {
        self.name(name)?;
        self.out.write_char('[')?;
        for (i, one) in all.into_iter().enumerate() {
            if i > 0 {
                self.out.write_char(',')?;
            }
            write(self.out, one)?;
        }
        self.out.write_char(']')
    }
}

/// Writes a string. Bytes that are no ASCII are taken one by one: a program may call itself anything.
pub fn text(out: &mut dyn Write, value: &[u8]) -> Result {
    out.write_char('"')?;
    for &b in value {
        match b {
            b'"' | b'\\' => write!(out, "\\{}", b as char)?,
            b' '..=b'~' => out.write_char(b as char)?,
            _ => write!(out, "\\u{b:04x}")?,
        }
    }
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_are_separated_and_texts_escaped() {
        let mut out = String::new();
        object(&mut out, |o| {
            o.number("a", 1)?;
            o.text("b", b"c\"\\\n\xff~")?;
            o.flag("c", true)?;
            o.list("d", [1, 2], |out, n| write!(out, "{n}"))?;
            o.list("e", [b"x"], |out, t| text(out, t))?;
            o.list("f", [0; 0], |_, _| Ok(()))?;
            o.object("g", |_| Ok(()))?;
            o.object("h", |o| o.number("i", 2))
        })
        .unwrap();
        let want = r#"{"a":1,"b":"c\"\\\u000a\u00ff~","c":true,"d":[1,2],"e":["x"],"f":[],"g":{},"h":{"i":2}}"#;
        assert_eq!(out, want);
    }
}
