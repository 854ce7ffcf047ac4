//! Option lists of XTI: struct t_opthdr after struct t_opthdr, each with its value behind it.
//!
//! A header is four 32-bit words (length with the header, level, name, status); the next one begins at the next multiple
//! of 4 bytes (XNS 5.2, "The Use of Options in XTI").

/// sizeof(struct t_opthdr).
pub const HEADER: usize = 16;
/// Where headers begin: multiples of sizeof(t_uscalar_t).
pub const ALIGNMENT: usize = 4;

pub const XTI_GENERIC: u32 = 0xffff;
pub const INET_IP: u32 = 0;
pub const INET_TCP: u32 = 6;
pub const INET_UDP: u32 = 17;

pub const XTI_DEBUG: u32 = 0x0001;
pub const XTI_LINGER: u32 = 0x0080;
pub const XTI_SNDBUF: u32 = 0x1001;
pub const XTI_RCVBUF: u32 = 0x1002;
pub const XTI_SNDLOWAT: u32 = 0x1003;
pub const XTI_RCVLOWAT: u32 = 0x1004;
pub const T_TCP_NODELAY: u32 = 1;
pub const T_TCP_MAXSEG: u32 = 2;
pub const T_TCP_KEEPALIVE: u32 = 8;
pub const T_UDP_CHECKSUM: u32 = 0x0600;
pub const T_IP_OPTIONS: u32 = 4;
pub const T_IP_TOS: u32 = 1;
pub const T_IP_TTL: u32 = 2;
pub const T_IP_REUSEADDR: u32 = 0x40;
pub const T_IP_DONTROUTE: u32 = 0x10;
pub const T_IP_BROADCAST: u32 = 0x20;
/// In place of a name: every option of the level.
pub const T_ALLOPT: u32 = 0;

/// What t_optmgmt is to do (MGMT_flags).
pub const T_NEGOTIATE: i32 = 0x004;
pub const T_CHECK: i32 = 0x008;
pub const T_DEFAULT: i32 = 0x010;
pub const T_CURRENT: i32 = 0x080;
/// What became of an option (status), and of all of them (MGMT_flags of the answer).
pub const T_SUCCESS: i32 = 0x020;
pub const T_FAILURE: i32 = 0x040;
pub const T_PARTSUCCESS: i32 = 0x100;
pub const T_READONLY: i32 = 0x200;
pub const T_NOTSUPPORT: i32 = 0x400;

/// In place of a value: the provider may choose.
pub const T_UNSPEC: u32 = !0 - 2;
pub const T_YES: u32 = 1;
pub const T_NO: u32 = 0;
/// T_TCP_KEEPALIVE: the probe carries a byte of garbage.
pub const T_GARBAGE: u32 = 2;

/// One option of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opt<'a> {
    pub level: u32,
    pub name: u32,
    pub status: u32,
    pub value: &'a [u8],
}

/// The list is not one: a header is cut off, or a length is less than a header or reaches beyond the list. TBADOPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadList;

impl std::fmt::Display for BadList {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("malformed option list")
    }
}

impl std::error::Error for BadList {}

impl From<BadList> for crate::Refusal {
    fn from(_: BadList) -> crate::Refusal {
        crate::Refusal::new(crate::error::TBADOPT)
    }
}

/// The options of a list, in order. After an error nothing more comes.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    pub fn new(list: &'a [u8]) -> Options<'a> {
        Options { rest: list }
    }

    /// All of them, or BadList if any is malformed: nothing of a bad list is to be acted on.
    pub fn all(list: &'a [u8]) -> Result<Vec<Opt<'a>>, BadList> {
        Options::new(list).collect()
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Opt<'a>, BadList>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let first = first(self.rest);
        self.rest = match first {
            Ok(option) => {
                let taken = (HEADER + option.value.len()).next_multiple_of(ALIGNMENT);
                self.rest.get(taken..).unwrap_or(&[])
            }
            Err(BadList) => &[],
        };
        Some(first)
    }
}

impl Opt<'_> {
    /// The value as a number. By its length: 1, 4 or 8 bytes in the machine's order; `None` for any other.
    pub fn number(&self) -> Option<i64> {
        match *self.value {
            [byte] => Some(byte.into()),
            [a, b, c, d] => Some(i32::from_ne_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Some(i64::from_ne_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        }
    }

    /// The value as two 32-bit numbers (struct t_linger, struct t_kpalive), or as two 64-bit ones of programs whose
    /// structures have long members.
    pub fn pair(&self) -> Option<(i64, i64)> {
        let number = |value| Opt { value, ..*self }.number();
        match self.value.len() {
            8 | 16 => {
                let (first, second) = self.value.split_at(self.value.len() / 2);
                Some((number(first)?, number(second)?))
            }
            _ => None,
        }
    }
}

/// A list in the making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    bytes: Vec<u8>,
}

impl List {
    pub fn new() -> List {
        List::default()
    }

    pub fn push(&mut self, level: u32, name: u32, status: u32, value: &[u8]) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        let header = [(HEADER + value.len()) as u32, level, name, status];
        self.bytes
            .extend(header.iter().flat_map(|word| word.to_ne_bytes()));
        self.bytes.extend_from_slice(value);
    }

    /// With a t_uscalar_t or t_scalar_t as its value.
    pub fn push_number(&mut self, level: u32, name: u32, status: u32, value: i32) {
        self.push(level, name, status, &value.to_ne_bytes());
    }

    pub fn push_opt(&mut self, option: Opt<'_>) {
        self.push(option.level, option.name, option.status, option.value);
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The worse of two results: what the whole call's flags say (XNS 5.2, t_optmgmt: T_NOTSUPPORT, T_READONLY, T_FAILURE,
/// T_PARTSUCCESS, T_SUCCESS, from the worst to the best).
pub fn worse(one: i32, other: i32) -> i32 {
    let mut worst_first = WORST_FIRST.into_iter();
    let worst = worst_first.find(|status| [one, other].contains(status));
    worst.unwrap_or(one)
}

const WORST_FIRST: [i32; 5] = [
    T_NOTSUPPORT,
    T_READONLY,
    T_FAILURE,
    T_PARTSUCCESS,
    T_SUCCESS,
];

fn first(list: &[u8]) -> Result<Opt<'_>, BadList> {
    let header = list.first_chunk::<HEADER>().ok_or(BadList)?;
    let word = |index: usize| {
        let at = index * 4;
        u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let value = list.get(HEADER..word(0) as usize).ok_or(BadList)?;
    Ok(Opt {
        level: word(1),
        name: word(2),
        status: word(3),
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(words: [u32; 4]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn an_empty_list_has_no_options() {
        assert_eq!(Options::all(&[]), Ok(vec![]));
    }

    #[test]
    fn a_list_gives_back_what_was_pushed() {
        let mut list = List::new();
        list.push(INET_IP, T_IP_TTL, 0, &[64]);
        let linger = [1i32, 30].map(i32::to_ne_bytes).concat();
        list.push(XTI_GENERIC, XTI_LINGER, 0, &linger);
        list.push_number(INET_TCP, T_TCP_NODELAY, T_SUCCESS.cast_unsigned(), 1);
        assert_eq!(list.bytes().len(), 20 + 24 + 20);
        let options = Options::all(list.bytes()).unwrap();
        assert_eq!(options[0].number(), Some(64));
        assert_eq!(options[1].pair(), Some((1, 30)));
        assert_eq!(
            (options[2].level, options[2].name, options[2].status),
            (6, 1, 0x20)
        );
    }

    #[test]
    fn the_last_value_needs_no_padding() {
        let mut list = List::new();
        list.push(INET_IP, T_IP_TOS, 0, &[16]);
        assert_eq!(list.bytes().len(), HEADER + 1);
        assert_eq!(Options::all(list.bytes()).unwrap()[0].number(), Some(16));
    }

    #[test]
    fn lengths_that_lie_end_the_list() {
        for length in [0, 15, 17, u32::MAX] {
            let list = header([length, INET_TCP, T_TCP_NODELAY, 0]);
            let mut options = Options::new(&list);
            assert_eq!(options.next(), Some(Err(BadList)), "length {length}");
            assert_eq!(options.next(), None);
        }
        assert_eq!(Options::all(&[0; 15]), Err(BadList));
    }

    #[test]
    fn a_number_is_read_by_its_length() {
        let of = |value: &[u8]| {
            Opt {
                level: 0,
                name: 0,
                status: 0,
                value,
            }
            .number()
        };
        assert_eq!(of(&(-1i32).to_ne_bytes()), Some(-1));
        assert_eq!(of(&7i64.to_ne_bytes()), Some(7));
        assert_eq!(of(&[255]), Some(255));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[0; 3]), None);
    }

    #[test]
    fn the_worst_result_speaks_for_the_call() {
        assert_eq!(worse(T_SUCCESS, T_PARTSUCCESS), T_PARTSUCCESS);
        assert_eq!(worse(T_FAILURE, T_READONLY), T_READONLY);
        assert_eq!(worse(T_NOTSUPPORT, T_SUCCESS), T_NOTSUPPORT);
        assert_eq!(worse(T_SUCCESS, 0), T_SUCCESS);
    }
}
