//! Real programs, with what is wanted of them.

use super::Work;
use crate::experiment::{ACCELERATED, Goal, UNIX};
use crate::experiments::apps;
use crate::experiments::work::Wanted;
use crate::placement::Placement::{self, Apart, ApartBusy, Free, Same, SameBusy};

const APART: &[Placement] = &[Apart];

pub fn works() -> Vec<Box<dyn Work>> {
    let memcached = |operation| wanted(apps::memcached(operation), vec![apart(2.0, 8.0)]);
    vec![
        wanted(apps::redis("get", 1, 1), one_client()),
        wanted(apps::redis("set", 1, 1), one_client()),
        wanted(apps::redis("get", 50, 1), fifty_clients()),
        wanted(apps::redis("set", 50, 1), fifty_clients()),
        wanted(
            apps::redis("get", 50, 16),
            vec![apart(1.4, 2.0), over_unix(1.2, 1.5)],
        ),
        memcached("memcached-get"),
        memcached("memcached-set"),
        wanted(apps::iperf("iperf3", 1), vec![apart(1.6, 2.1)]),
        wanted(apps::nginx(1), vec![apart(8.0, 20.0)]),
        wanted(apps::nginx(16), vec![Goal::rate(&Placement::ALL, 2.2, 3.2)]),
    ]
}

fn wanted(work: Box<dyn Work>, goals: Vec<Goal>) -> Box<dyn Work> {
    Box::new(Wanted { work, goals })
}

fn apart(must: f64, aim: f64) -> Goal {
    Goal::rate(APART, must, aim)
}

fn over_unix(must: f64, aim: f64) -> Goal {
    apart(must, aim).between(ACCELERATED, UNIX)
}

fn one_client() -> Vec<Goal> {
    vec![
        apart(10.0, 25.0),
        Goal::rate(&[Same, SameBusy, ApartBusy], 2.0, 3.0),
        over_unix(8.0, 20.0),
    ]
}

fn fifty_clients() -> Vec<Goal> {
    vec![
        apart(6.0, 13.0),
        Goal::rate(&[Free, Same], 4.0, 5.5),
        over_unix(4.0, 8.0),
    ]
}
