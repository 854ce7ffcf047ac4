//! Who uses whom, and whether that goes in a circle.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

/// Of each user what it uses, and where.
#[derive(Default)]
pub struct Graph(BTreeMap<String, BTreeMap<String, String>>);

impl Graph {
    pub fn add(&mut self, user: &str, used: &str, at: String) {
        let all = self.0.entry(user.to_owned()).or_default();
        all.entry(used.to_owned()).or_insert(at);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The shortest, a line for each use in it.
    pub fn circle(&self) -> Option<String> {
        let ways = self.0.keys().filter_map(|begin| self.way_back(begin));
        let way = ways.min_by_key(Vec::len)?;
        let mut told = String::new();
        for (user, used) in way.iter().zip(way.iter().cycle().skip(1)) {
            let at = &self.0[*user][*used];
            writeln!(told, "  {user} uses {used}: {at}").unwrap();
        }
        Some(told)
    }

    /// Those by whom `begin` uses itself, from itself on.
    fn way_back<'a>(&'a self, begin: &'a str) -> Option<Vec<&'a str>> {
        let mut from = BTreeMap::new();
        let mut next = VecDeque::from([begin]);
        while let Some(user) = next.pop_front() {
            for used in self
                .0
                .get(user)
                .into_iter()
                .flat_map(BTreeMap::keys)
                .map(String::as_str)
            {
                if used == begin {
                    let mut way = vec![user];
                    while let Some(&before) = from.get(way[way.len() - 1]) {
                        way.push(before);
                    }
                    way.reverse();
                    return Some(way);
                }
                if !from.contains_key(used) {
                    from.insert(used, user);
                    next.push_back(used);
                }
            }
        }
        None
    }
}

fn graph(uses: &[(&str, &str)]) -> Graph {
    let mut graph = Graph::default();
    for (user, used) in uses {
        graph.add(user, used, format!("{user}.rs:1"));
    }
    graph
}

#[test]
fn what_only_goes_down_is_no_circle() {
    assert_eq!(graph(&[("a", "b"), ("a", "c"), ("b", "c")]).circle(), None);
}

#[test]
fn a_circle_is_told_with_a_place_for_each_use() {
    let told = graph(&[
        ("top", "a"),
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
        ("c", "low"),
    ])
    .circle();
    let wanted = "  a uses b: a.rs:1\n  b uses c: b.rs:1\n  c uses a: c.rs:1\n";
    assert_eq!(told.as_deref(), Some(wanted));
}

#[test]
fn the_shortest_circle_is_told() {
    let told = graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")]).circle();
    let wanted = "  b uses c: b.rs:1\n  c uses b: c.rs:1\n";
    assert_eq!(told.as_deref(), Some(wanted));
}
