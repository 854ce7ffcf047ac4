//! t_optmgmt, for every provider: a provider has a table of the options that it knows and a way to read and set them; the
//! rest is the same for all (XNS 5.2, "The Use of Options in XTI", t_optmgmt).

use headwater_tpi::Refusal;
use headwater_tpi::error::{TACCES, TBADFLAG, TBADOPT};
use headwater_tpi::option::*;

use crate::provider::Outcome;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    Number(i64),
    /// struct t_linger, struct t_kpalive.
    Pair(i64, i64),
    Bytes(Vec<u8>),
}

use Value::*;

/// What a value looks like and what is legal in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// T_YES or T_NO.
    Flag,
    /// A t_uscalar_t; one beyond these limits is brought within them, which is a partial success.
    Number(i64, i64),
    /// A t_uscalar_t of which all values are legal.
    Word,
    /// One byte, though longer values are taken.
    Byte,
    /// The first half is a flag, with T_GARBAGE beside it perhaps; the second a number or T_UNSPEC.
    Pair,
    /// At most so many bytes.
    Bytes(usize),
}

/// An option that a provider knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    pub level: u32,
    pub name: u32,
    pub kind: Kind,
    pub read_only: bool,
    /// The default: a number, the two halves, or no bytes.
    pub default: (i64, i64),
}

impl Known {
    pub const fn new(level: u32, name: u32, kind: Kind, default: (i64, i64)) -> Known {
        Known {
            level,
            name,
            kind,
            read_only: false,
            default,
        }
    }

    pub const fn read_only(self) -> Known {
        Known {
            read_only: true,
            ..self
        }
    }

    pub fn default_value(&self) -> Value {
        match self.kind {
            Kind::Pair => Pair(self.default.0, self.default.1),
            Kind::Bytes(_) => Bytes(Vec::new()),
            _ => Number(self.default.0),
        }
    }
}

/// Where the values of the options are.
pub trait Settings {
    fn value(&self, option: &Known) -> Value;
    /// Sets a legal value. Gives the value that holds now. Errors: errno.
    fn set(&mut self, option: &Known, value: Value) -> Result<Value, i32>;
}

/// Values that only have to be remembered.
#[derive(Default, Debug)]
pub struct Remembered(Vec<(Known, Value)>);

impl Remembered {
    /// What was set, if anything was.
    fn chosen(&self, level: u32, name: u32) -> Option<&Value> {
        let mut all = self.all();
        all.find_map(|(o, value)| ((o.level, o.name) == (level, name)).then_some(value))
    }

    /// The number that was set; 0: none was.
    pub fn number(&self, level: u32, name: u32) -> u32 {
        match self.chosen(level, name) {
            Some(Number(n)) => u32::try_from(*n).unwrap_or(u32::MAX),
            _ => 0,
        }
    }

    /// In the order in which they were set.
    pub fn all(&self) -> impl Iterator<Item = &(Known, Value)> {
        self.0.iter()
    }
}

impl Settings for Remembered {
    fn value(&self, option: &Known) -> Value {
        let chosen = self.chosen(option.level, option.name);
        chosen.map_or_else(|| option.default_value(), Value::clone)
    }

    fn set(&mut self, option: &Known, value: Value) -> Result<Value, i32> {
        self.0.retain(|(known, _)| known != option);
        self.0.push((*option, value.clone()));
        Ok(value)
    }
}

/// Buffer sizes and so on, as every provider has them.
pub const GENERIC: [Known; 6] = [DEBUG, LINGER, SNDBUF, RCVBUF, SNDLOWAT, RCVLOWAT];
/// The same without what needs a connection.
pub const GENERIC_CONNECTIONLESS: [Known; 5] = [DEBUG, SNDBUF, RCVBUF, SNDLOWAT, RCVLOWAT];

const NO: i64 = T_NO as i64;
const DEBUG: Known = Known::new(XTI_GENERIC, XTI_DEBUG, Kind::Bytes(64), (0, 0));
const LINGER: Known = Known::new(XTI_GENERIC, XTI_LINGER, Kind::Pair, (NO, T_UNSPEC as i64));
const SNDBUF: Known = bytes(XTI_SNDBUF, 65536);
const RCVBUF: Known = bytes(XTI_RCVBUF, 65536);
const SNDLOWAT: Known = bytes(XTI_SNDLOWAT, 1);
const RCVLOWAT: Known = bytes(XTI_RCVLOWAT, 1);

const fn bytes(name: u32, default: i64) -> Known {
    let most = 64 << 20;
    Known::new(XTI_GENERIC, name, Kind::Number(1, most), (default, 0))
}

pub const TCP: [Known; 3] = [
    Known::new(INET_TCP, T_TCP_NODELAY, Kind::Flag, (NO, 0)),
    Known::new(INET_TCP, T_TCP_MAXSEG, Kind::Number(1, 65535), (536, 0)).read_only(),
    Known::new(INET_TCP, T_TCP_KEEPALIVE, Kind::Pair, (NO, 120)),
];

const CHECKSUM: Known = Known::new(INET_UDP, T_UDP_CHECKSUM, Kind::Flag, (T_YES as i64, 0));
pub const UDP: [Known; 1] = [CHECKSUM];

pub const IP: [Known; 6] = [
    Known::new(INET_IP, T_IP_OPTIONS, Kind::Bytes(40), (0, 0)),
    Known::new(INET_IP, T_IP_TOS, Kind::Byte, (0, 0)),
    Known::new(INET_IP, T_IP_TTL, Kind::Byte, (64, 0)),
    Known::new(INET_IP, T_IP_REUSEADDR, Kind::Flag, (NO, 0)),
    Known::new(INET_IP, T_IP_DONTROUTE, Kind::Flag, (NO, 0)),
    Known::new(INET_IP, T_IP_BROADCAST, Kind::Flag, (NO, 0)),
];

/// t_optmgmt. `table` is what the provider knows, in pieces. Gives the overall flag, the worst of all answers, and the list
/// of answers. TBADFLAG, TBADOPT (and nothing is changed), TACCES.
pub fn negotiate(
    table: &[&[Known]],
    settings: &mut dyn Settings,
    flags: u32,
    opts: &[u8],
) -> Outcome<(u32, Vec<u8>)> {
    let action = flags as i32;
    if ![T_NEGOTIATE, T_CHECK, T_DEFAULT, T_CURRENT].contains(&action) {
        return Err(Refusal::new(TBADFLAG));
    }
    let asked = Options::all(opts)?;
    refuse_illegal(table, action, &asked)?;
    let mut answers = Answers {
        list: List::new(),
        overall: T_SUCCESS,
    };
    if asked.is_empty() && action == T_DEFAULT {
        for option in table.iter().copied().flatten() {
            answers.tell(option, &option.default_value());
        }
    }
    for asked in &asked {
        let mut found = known(table, asked).peekable();
        if found.peek().is_none() {
            answers.refuse(asked);
        }
        for option in found {
            answer(option, settings, action, asked, &mut answers)?;
        }
    }
    Ok((answers.overall as u32, answers.list.into_bytes()))
}

/// The options that come with a connection or a datagram: those known are set, others don't matter. TBADOPT, TACCES.
pub fn apply(table: &[&[Known]], settings: &mut dyn Settings, opts: &[u8]) -> Outcome<()> {
    if opts.is_empty() {
        return Ok(());
    }
    negotiate(table, settings, T_NEGOTIATE as u32, opts).map(drop)
}

struct Answers {
    list: List,
    overall: i32,
}

impl Answers {
    /// `width`: of the value that was asked with, 0 if there was none.
    fn add(&mut self, option: &Known, status: i32, value: &Value, width: usize) {
        self.overall = worse(self.overall, status);
        let value = match value {
            Number(n) if width == 8 => n.to_ne_bytes().to_vec(),
            Number(n) if width == 1 || width == 0 && option.kind == Kind::Byte => vec![*n as u8],
            Number(n) => (*n as i32).to_ne_bytes().to_vec(),
            Pair(a, b) if width == 16 => [a, b].map(|n| n.to_ne_bytes()).concat(),
            Pair(a, b) => [a, b].map(|n| (*n as i32).to_ne_bytes()).concat(),
            Bytes(bytes) => bytes.clone(),
        };
        self.list
            .push(option.level, option.name, status as u32, &value);
    }

    /// What is asked for by its name alone.
    fn tell(&mut self, option: &Known, value: &Value) {
        let status = if option.read_only {
            T_READONLY
        } else {
            T_SUCCESS
        };
        self.add(option, status, value, 0);
    }

    /// Nobody knows it: the option goes back as it came.
    fn refuse(&mut self, asked: &Opt<'_>) {
        self.overall = worse(self.overall, T_NOTSUPPORT);
        self.list.push_opt(Opt {
            status: T_NOTSUPPORT as u32,
            ..*asked
        });
    }
}

/// Those that an option of a list names.
fn known<'a>(table: &[&'a [Known]], asked: &Opt<'_>) -> impl Iterator<Item = &'a Known> {
    table.iter().copied().flatten().filter(|known| {
        asked.level == known.level && (asked.name == T_ALLOPT || asked.name == known.name)
    })
}

/// All is looked at before anything is changed.
fn refuse_illegal(table: &[&[Known]], action: i32, asked: &[Opt<'_>]) -> Outcome<()> {
    for asked in asked {
        if asked.name == T_ALLOPT {
            if action == T_CHECK {
                return Err(Refusal::new(TBADOPT));
            }
            continue;
        }
        if let Some(known) = known(table, asked).next()
            && (action == T_NEGOTIATE || action == T_CHECK && !asked.value.is_empty())
            && !known.read_only
        {
            read(known, asked)?;
        }
    }
    Ok(())
}

fn answer(
    option: &Known,
    settings: &mut dyn Settings,
    action: i32,
    asked: &Opt<'_>,
    answers: &mut Answers,
) -> Outcome<()> {
    let width = asked.value.len();
    match action {
        T_CURRENT => answers.tell(option, &settings.value(option)),
        T_DEFAULT => answers.tell(option, &option.default_value()),
        _ if option.read_only => {
            // T_ALLOPT sets what can be set.
            if asked.name != T_ALLOPT {
                answers.add(option, T_READONLY, &settings.value(option), width);
            }
        }
        T_CHECK if width == 0 => {
            answers
                .list
                .push(option.level, option.name, T_SUCCESS as u32, &[])
        }
        T_CHECK => {
            let (wanted, status) = read(option, asked)?;
            answers.add(option, status, &wanted, width);
        }
        _ => {
            let (wanted, status) = match asked.name {
                T_ALLOPT => (option.default_value(), T_SUCCESS),
                _ => read(option, asked)?,
            };
            match settings.set(option, wanted.clone()) {
                Ok(granted) if granted == wanted => answers.add(option, status, &granted, width),
                Ok(granted) => answers.add(option, T_PARTSUCCESS, &granted, width),
                Err(libc::EPERM | libc::EACCES) => return Err(Refusal::new(TACCES)),
                Err(_) => answers.add(option, T_FAILURE, &settings.value(option), width),
            }
        }
    }
    Ok(())
}

/// The value that is asked for, brought within its limits. TBADOPT.
fn read(option: &Known, asked: &Opt<'_>) -> Outcome<(Value, i32)> {
    let bad = || Refusal::new(TBADOPT);
    let unspecified = |n: i64| n as u32 == T_UNSPEC;
    let number = || asked.number().ok_or_else(bad);
    Ok(match option.kind {
        Kind::Flag | Kind::Number(..) if unspecified(number()?) => {
            (option.default_value(), T_SUCCESS)
        }
        Kind::Flag => match number()? {
            n @ (0 | 1) => (Number(n), T_SUCCESS),
            _ => return Err(bad()),
        },
        Kind::Number(least, most) => {
            let n = number()?;
            if n < 0 {
                return Err(bad());
            }
            match n.clamp(least, most) {
                within if within == n => (Number(n), T_SUCCESS),
                within => (Number(within), T_PARTSUCCESS),
            }
        }
        Kind::Word => (Number(number()? as u32 as i64), T_SUCCESS),
        Kind::Byte => match number()? {
            n @ 0..=255 => (Number(n), T_SUCCESS),
            _ => return Err(bad()),
        },
        Kind::Pair => {
            let (first, second) = asked.pair().ok_or_else(bad)?;
            let flag = first & !i64::from(T_GARBAGE);
            if !(0..=1).contains(&flag) || second < 0 && !unspecified(second) {
                return Err(bad());
            }
            (Pair(flag, second), T_SUCCESS)
        }
        Kind::Bytes(most) if asked.value.len() > most => return Err(bad()),
        Kind::Bytes(_) => (Bytes(asked.value.to_vec()), T_SUCCESS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [&[Known]; 2] = [&GENERIC, &TCP];

    fn one(level: u32, name: u32, value: &[u8]) -> Vec<u8> {
        let mut list = List::new();
        list.push(level, name, 0, value);
        list.into_bytes()
    }

    fn ask(settings: &mut Remembered, flags: i32, opts: &[u8]) -> (i32, Vec<(u32, i32, Vec<u8>)>) {
        let (overall, list) = negotiate(&TABLE, settings, flags as u32, opts).unwrap();
        let answers = Options::all(&list).unwrap();
        (
            overall as i32,
            answers
                .iter()
                .map(|o| (o.name, o.status as i32, o.value.to_vec()))
                .collect(),
        )
    }

    #[test]
    fn what_was_negotiated_is_current() {
        let mut settings = Remembered::default();
        let on = one(INET_TCP, T_TCP_NODELAY, &1u32.to_ne_bytes());
        assert_eq!(ask(&mut settings, T_NEGOTIATE, &on).0, T_SUCCESS);
        let current = ask(&mut settings, T_CURRENT, &one(INET_TCP, T_TCP_NODELAY, &[]));
        assert_eq!(
            current.1,
            [(T_TCP_NODELAY, T_SUCCESS, 1u32.to_ne_bytes().to_vec())]
        );
        let default = ask(&mut settings, T_DEFAULT, &one(INET_TCP, T_TCP_NODELAY, &[]));
        assert_eq!(default.1[0].2, 0u32.to_ne_bytes());
    }

    #[test]
    fn the_overall_flag_is_the_worst() {
        let mut list = List::new();
        list.push_number(XTI_GENERIC, XTI_SNDBUF, 0, 10_000);
        list.push_number(INET_TCP, T_TCP_MAXSEG, 0, 10);
        list.push_number(INET_TCP, 4711, 0, 1);
        let (overall, answers) = ask(&mut Remembered::default(), T_NEGOTIATE, list.bytes());
        assert_eq!(overall, T_NOTSUPPORT);
        let status: Vec<i32> = answers.iter().map(|a| a.1).collect();
        assert_eq!(status, [T_SUCCESS, T_READONLY, T_NOTSUPPORT]);
    }

    #[test]
    fn eight_byte_values_are_answered_with_eight() {
        let value = 20_000i64.to_ne_bytes();
        let (_, answers) = ask(
            &mut Remembered::default(),
            T_NEGOTIATE,
            &one(XTI_GENERIC, XTI_RCVBUF, &value),
        );
        assert_eq!(answers[0].2, value);
    }

    #[test]
    fn a_bad_value_changes_nothing_of_the_list() {
        let mut list = List::new();
        list.push_number(XTI_GENERIC, XTI_SNDBUF, 0, 10_000);
        list.push(INET_TCP, T_TCP_NODELAY, 0, &[1, 2, 3]);
        let mut settings = Remembered::default();
        let refused = negotiate(&TABLE, &mut settings, T_NEGOTIATE as u32, list.bytes());
        assert_eq!(refused.unwrap_err().tli, TBADOPT);
        assert_eq!(settings.value(&SNDBUF), SNDBUF.default_value());
    }

    #[test]
    fn all_options_of_a_level_are_listed() {
        let (_, answers) = ask(
            &mut Remembered::default(),
            T_CURRENT,
            &one(INET_TCP, T_ALLOPT, &[]),
        );
        assert_eq!(answers.len(), TCP.len());
    }
}
