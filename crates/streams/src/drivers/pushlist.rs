//! Which modules are pushed when a device is opened: the file `autopush` in the runtime folder, read at each open. A line is
//! `device minor lastminor module module ...`, with -1 -1 for all minor devices. SAD_SAP and `headwater streams autopush`
//! write it.

use headwater_host::sys::Errno;

use crate::board::folder;
use crate::exec::registry::FMNAMESZ;

/// Most modules of one device (MAXAPUSH).
pub const MAXAPUSH: usize = 8;

const FILE: &str = "autopush";
const LOCK: &str = "autopush.lock";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minors {
    All,
    /// First and last.
    Range(u32, u32),
}

/// What is pushed on some minor devices of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub device: String,
    pub minors: Minors,
    /// In the order in which they are pushed.
    pub modules: Vec<String>,
}

/// The modules to be pushed when this minor device is opened, in order; none without a table.
pub fn modules_for(device: &str, minor: u32) -> Vec<String> {
    find(device, minor).map(|e| e.modules).unwrap_or_default()
}

/// The entry that a minor device belongs to.
pub fn find(device: &str, minor: u32) -> Option<Entry> {
    list().into_iter().find(|e| e.is_of(device, minor))
}

/// The whole table.
pub fn list() -> Vec<Entry> {
    let bytes = folder::read(FILE).unwrap_or_default();
    parse(&String::from_utf8_lossy(&bytes))
}

/// Adds an entry. EINVAL: no modules, too many, impossible names, an empty range. EEXIST: one of these minor devices has an
/// entry already. Else what writing the file says.
pub fn set(entry: Entry) -> Result<(), Errno> {
    if !entry.makes_sense() {
        return Err(libc::EINVAL);
    }
    folder::locked(LOCK, || {
        let mut all = list();
        let same = |e: &&Entry| e.device == entry.device && e.minors.overlap(entry.minors);
        if all.iter().find(same).is_some() {
            return Err(libc::EEXIST);
        }
        all.push(entry.clone());
        write(&all)
    })
}

/// Removes the entry of a minor device. ENODEV: it has none. ERANGE: it is not the first one of its range.
pub fn remove(device: &str, minor: u32) -> Result<(), Errno> {
    folder::locked(LOCK, || {
        let mut all = list();
        let at = all.iter().position(|e| e.is_of(device, minor));
        let at = at.ok_or(libc::ENODEV)?;
        if matches!(all[at].minors, Minors::Range(first, _) if first != minor) {
            return Err(libc::ERANGE);
        }
        all.remove(at);
        write(&all)
    })
}

fn write(all: &[Entry]) -> Result<(), Errno> {
    let lines: String = all.iter().map(Entry::line).collect();
    folder::replace(FILE, lines.as_bytes())
}

/// Lines that make no sense are passed over.
fn parse(text: &str) -> Vec<Entry> {
    text.lines().filter_map(Entry::parse).collect()
}

impl Entry {
    /// A line of the table; `None` if it makes no sense.
    pub fn parse(line: &str) -> Option<Entry> {
        let mut words = line.split_whitespace();
        let device = words.next()?.to_string();
        let first: i64 = words.next()?.parse().ok()?;
        let last: i64 = words.next()?.parse().ok()?;
        let minors = match (first, last) {
            (-1, _) => Minors::All,
            _ => Minors::Range(u32::try_from(first).ok()?, u32::try_from(last).ok()?),
        };
        let modules = words.map(str::to_string).collect();
        let entry = Entry {
            device,
            minors,
            modules,
        };
        entry.makes_sense().then_some(entry)
    }

    fn line(&self) -> String {
        let (first, last) = match self.minors {
            Minors::All => (-1, -1),
            Minors::Range(first, last) => (first as i64, last as i64),
        };
        let modules = self.modules.join(" ");
        format!("{} {first} {last} {modules}\n", self.device)
    }

    fn is_of(&self, device: &str, minor: u32) -> bool {
        self.device == device && self.minors.contains(minor)
    }

    fn makes_sense(&self) -> bool {
        let is_word = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_graphic());
        let mut names = self.modules.iter();
        is_word(&self.device)
            && (1..=MAXAPUSH).contains(&self.modules.len())
            && names.all(|m| is_word(m) && m.len() <= FMNAMESZ)
            && !matches!(self.minors, Minors::Range(first, last) if last < first)
    }
}

impl Minors {
    pub fn contains(self, minor: u32) -> bool {
        match self {
            Minors::All => true,
            Minors::Range(first, last) => (first..=last).contains(&minor),
        }
    }

    fn overlap(self, other: Minors) -> bool {
        match (self, other) {
            (Minors::Range(a, b), Minors::Range(c, d)) => a <= d && c <= b,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let text = "echo 0 0 bufmod\nloop -1 -1 sc nullmod\n";
        let all = parse(text);
        assert_eq!(all[0].minors, Minors::Range(0, 0));
        assert_eq!(all[1].modules, ["sc", "nullmod"]);
        assert_eq!(all.iter().map(Entry::line).collect::<String>(), text);
    }

    #[test]
    fn nonsense_is_passed_over() {
        let text =
            "echo\necho 0 0\necho 3 1 sc\necho x 1 sc\necho 0 0 averylongname\n\necho 1 2 sc";
        let all = parse(text);
        assert_eq!(all.len(), 1);
        assert!(all[0].minors.contains(2) && !all[0].minors.contains(3));
    }
}
