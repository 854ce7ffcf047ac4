//! What modules use, as their tokens tell: the paths of `use`, and those that begin with `crate`, `super`, `self`, a name
//! that was brought in by `use`, or that of a module within, in macros too. What comes by `*` is not told.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::graph::Graph;

/// Of a module, from that of the crate on, which is empty.
type Name = Vec<String>;

struct Module {
    file: PathBuf,
    paths: Vec<Mention>,
}

/// Of a path.
struct Mention {
    /// Within the file's module, where modules are written out.
    within: Name,
    segments: Name,
    line: usize,
    /// By `use`, under this name.
    brought_in: Option<String>,
}

/// The uses of modules by each other in the crate that begins with `root`.
pub fn of_modules(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Graph {
    let mut modules = BTreeMap::new();
    let folder = root.parent().unwrap();
    add(&mut modules, Name::new(), root, folder, read);
    let mut graph = Graph::default();
    for (name, module) in &modules {
        for mention in &module.paths {
            let Some(used) = resolve(&modules, name, mention) else {
                continue;
            };
            if !used.starts_with(name) && !name.starts_with(&used) {
                let at = format!("{}:{}", module.file.display(), mention.line);
                graph.add(&name.join("::"), &used.join("::"), at);
            }
        }
    }
    graph
}

/// The module of a file, and those that it has in files; `folder`: where these are.
fn add(
    modules: &mut BTreeMap<Name, Module>,
    name: Name,
    file: &Path,
    folder: &Path,
    read: &dyn Fn(&Path) -> Option<String>,
) {
    let text = read(file).unwrap_or_else(|| panic!("{} is missing", file.display()));
    let tokens = text
        .parse()
        .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut found = Found::default();
    found.look_through(tokens, &Name::new());
    for child in &found.children {
        let path = child
            .iter()
            .fold(folder.to_owned(), |path, part| path.join(part));
        let files = [path.with_extension("rs"), path.join("mod.rs")];
        let file = files.iter().find(|file| read(file).is_some());
        let file = file.unwrap_or_else(|| panic!("{} has no file", path.display()));
        add(modules, [&name[..], child].concat(), file, &path, read);
    }
    let file = file.to_owned();
    let paths = found.paths;
    modules.insert(name, Module { file, paths });
}

/// The module that a path leads to or into. `None`: it is none of the crate's.
fn resolve(modules: &BTreeMap<Name, Module>, user: &Name, mention: &Mention) -> Option<Name> {
    let here = [&user[..], &mention.within].concat();
    let (first, rest) = mention.segments.split_first()?;
    let begin = match first.as_str() {
        "crate" => Name::new(),
        "self" => here,
        "super" => here[..here.len().checked_sub(1)?].to_vec(),
        name if modules.contains_key(&[&here[..], &[name.to_owned()]].concat()) => {
            [&here[..], &[name.to_owned()]].concat()
        }
        name => {
            let is = |other: &&Mention| other.brought_in.as_deref() == Some(name);
            let by = modules[user]
                .paths
                .iter()
                .filter(is)
                .find(|by| by.segments[0] != name)?;
            let used = resolve(modules, user, by)?;
            // A type, or a function, of a module is not looked into.
            used.ends_with(&by.segments[by.segments.len() - 1..])
                .then_some(used)?
        }
    };
    let mut used = begin;
    for segment in rest {
        match segment.as_str() {
            "super" => _ = used.pop(),
            "self" => {}
            _ => used.push(segment.clone()),
        }
    }
    while !modules.contains_key(&used) {
        used.pop();
    }
    Some(used)
}

#[derive(Default)]
struct Found {
    children: Vec<Name>,
    paths: Vec<Mention>,
}

impl Found {
    fn look_through(&mut self, tokens: TokenStream, within: &Name) {
        let mut tokens = lasting(tokens).into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => self.look_through(group.stream(), within),
                TokenTree::Ident(word) if word == "mod" => {
                    let Some(TokenTree::Ident(name)) = tokens.next() else {
                        continue;
                    };
                    let name = [&within[..], &[name.to_string()]].concat();
                    match tokens.next() {
                        Some(TokenTree::Group(body)) => self.look_through(body.stream(), &name),
                        _ => self.children.push(name),
                    }
                }
                TokenTree::Ident(word) if word == "use" => {
                    self.tree(&mut tokens, Name::new(), within);
                }
                TokenTree::Ident(word) => {
                    let line = word.span().start().line;
                    let mut segments = vec![word.to_string()];
                    while is_path(&mut tokens) {
                        match tokens.next() {
                            Some(TokenTree::Ident(word)) => segments.push(word.to_string()),
                            Some(TokenTree::Group(group)) => {
                                self.look_through(group.stream(), within);
                                break;
                            }
                            _ => break,
                        }
                    }
                    if segments.len() > 1 {
                        self.mention(within, segments, line, None);
                    }
                }
                _ => {}
            }
        }
    }

    /// What stands behind `use`, or within the braces of that.
    fn tree(&mut self, tokens: &mut Tokens, begin: Name, within: &Name) {
        let mut segments = begin.clone();
        let (mut line, mut alias) = (0, None);
        loop {
            match tokens.next() {
                Some(TokenTree::Ident(word)) if word == "as" => {
                    alias = tokens.next().map(|name| name.to_string());
                }
                Some(TokenTree::Ident(word)) => {
                    line = word.span().start().line;
                    segments.push(word.to_string());
                }
                Some(TokenTree::Group(group)) => {
                    let mut inner = lasting(group.stream()).into_iter().peekable();
                    while inner.peek().is_some() {
                        self.tree(&mut inner, segments.clone(), within);
                    }
                    line = 0;
                }
                Some(TokenTree::Punct(mark)) if mark.as_char() == ':' || mark.as_char() == '*' => {}
                end => {
                    if line > 0 {
                        segments.pop_if(|last| last == "self" && !begin.is_empty());
                        let name = alias.or_else(|| segments.last().cloned());
                        self.mention(within, segments, line, name);
                    }
                    debug_assert!(end.is_none_or(|end| matches!(end, TokenTree::Punct(_))));
                    return;
                }
            }
        }
    }

    fn mention(&mut self, within: &Name, segments: Name, line: usize, brought_in: Option<String>) {
        let within = within.clone();
        self.paths.push(Mention {
            within,
            segments,
            line,
            brought_in,
        });
    }
}

type Tokens = Peekable<std::vec::IntoIter<TokenTree>>;

/// Does a path go on? Takes its `::`.
fn is_path(tokens: &mut Tokens) -> bool {
    let mut is_colon = || {
        let next = tokens.next_if(|t| matches!(t, TokenTree::Punct(mark) if mark.as_char() == ':'));
        next.is_some()
    };
    is_colon() && is_colon()
}

/// But for items that are compiled for tests alone.
fn lasting(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_attribute = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == '#');
        if is_attribute && tokens.peek().is_some_and(is_for_tests) {
            // An item ends with its body, or a semicolon.
            let _ = tokens.find(|token| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(mark) => mark.as_char() == ';',
                _ => false,
            });
        } else {
            kept.push(token);
        }
    }
    kept
}

fn is_for_tests(attribute: &TokenTree) -> bool {
    let told: String = attribute.to_string().split_whitespace().collect();
    let conditions = told
        .strip_prefix("[cfg(")
        .or_else(|| told.strip_prefix("[test]").map(|_| "test"));
    conditions.is_some_and(|told| {
        let mut words = told.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.clone().any(|word| word == "test") && !words.any(|word| word == "not")
    })
}

/// The shortest circle in a crate of these files.
fn circle(files: &[(&str, &str)]) -> Option<String> {
    let read = |path: &Path| {
        let text = files.iter().find(|(file, _)| Path::new(file) == path);
        text.map(|(_, text)| (*text).to_owned())
    };
    of_modules(Path::new("lib.rs"), &read).circle()
}

/// Is this in a module `a` a use of its sibling `b`, which uses `a`?
#[track_caller]
fn check(text: &str, uses: bool) {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", text),
        ("a/c.rs", "fn f() { super::super::b::g() }"),
        ("a/tests.rs", "use crate::b;"),
        ("b.rs", "\nuse crate::a::f; // crate::nothing\nmod c;"),
        ("b/c.rs", ""),
    ];
    let wanted = uses.then_some("  a uses b: a.rs:1\n  b uses a: b.rs:2\n");
    assert_eq!(circle(&files).as_deref(), wanted, "{text}");
}

#[test]
fn each_way_to_name_a_module_is_seen() {
    check("use crate::b;", true);
    check("use super::b as other;", true);
    check("use crate::{x::{y, z}, b::{self, g}};", true);
    check("fn f() { crate::b::g() }", true);
    check("macro_rules! m { () => { $crate::b::g() } }", true);
    check("mod within { fn f() { super::super::b::g() } }", true);
    check("fn f() -> Vec<super::b::G> { todo!() }", true);
}

#[test]
fn what_names_no_other_module_is_no_use() {
    check("fn f() { other::b::g(); b.g(); let b = 1; }", false);
    check("mod b {} fn f() { self::b::g() }", false);
    check("const TEXT: &str = \"crate::b\"; // crate::b", false);
    check("use core::b;", false);
}

#[test]
fn test_code_uses_what_it_likes() {
    check("#[cfg(test)] mod tests;", false);
    check(
        "#[cfg(all(test, loom))] #[path = \"x.rs\"] mod others { use crate::b; }",
        false,
    );
    check("#[cfg(test)] fn f() { crate::b::g() }", false);
    check("#[cfg(test)] use crate::{b, c}; fn f() {}", false);
    check("#[cfg(not(test))] use crate::b;", true);
}

#[test]
fn modules_within_are_modules_of_their_own() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod c; mod d; fn f() { c::f() }"),
        ("a/c.rs", "use super::d;"),
        ("a/d.rs", "use crate::b;\nfn f() { b::e::f() }"),
        ("b/mod.rs", "mod e;"),
        ("b/e.rs", "fn f() { crate::a::c::f() }"),
    ];
    let wanted =
        "  a::c uses a::d: a/c.rs:1\n  a::d uses b::e: a/d.rs:2\n  b::e uses a::c: b/e.rs:1\n";
    assert_eq!(circle(&files).as_deref(), Some(wanted));
}
