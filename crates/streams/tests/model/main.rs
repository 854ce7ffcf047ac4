//! The queues of a small stream against a plain model: random operations on both, every result and all state compared after
//! each.
//!
//! Write side, from the top: `head` (its service procedure only counts), `module` (queues, forwards while there is room),
//! `pass` (no service procedure), `driver` (queues, takes a few messages at a time).

mod model;
mod real;

use model::{Kind, Letter, Model};
use proptest::prelude::*;
use real::Real;

/// Queues of the stream, by index.
pub const HEAD: usize = 0;
pub const MODULE: usize = 1;
pub const PASS: usize = 2;
pub const DRIVER: usize = 3;
pub const QUEUES: usize = 4;

#[derive(Clone, Debug)]
pub enum Op {
    Put(usize, Letter),
    Putq(usize, Letter),
    Putbq(usize, Letter),
    /// Before the message at this place, counted modulo all places and the end.
    Insq(usize, usize, Letter),
    Getq(usize),
    GetAndPutBack(usize),
    Rmvq(usize, usize),
    Flushq(usize, bool),
    Flushband(usize, u8, bool),
    Canput(usize, u8),
    SetMark(usize, bool, u8, usize),
    Noenable(usize),
    Enableok(usize),
    Qenable(usize),
    /// Services the enabled queues; the driver takes so many messages each time.
    Run(usize),
}

fn band() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0), 4 => 1u8..4, 1 => Just(6)]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => Just(Kind::Data),
        2 => Just(Kind::Proto),
        2 => Just(Kind::Ctl),
        1 => Just(Kind::PcProto),
        1 => Just(Kind::IocAck),
    ]
}

fn letter() -> impl Strategy<Value = Letter> {
    let blocks = prop::collection::vec(prop_oneof![Just(0usize), 1usize..40], 1..3);
    (kind(), band(), blocks).prop_map(|(kind, band, blocks)| Letter { kind, band, blocks })
}

fn op() -> impl Strategy<Value = Op> {
    let q = || prop_oneof![1 => Just(HEAD), 4 => Just(MODULE), 1 => Just(PASS), 4 => Just(DRIVER)];
    prop_oneof![
        6 => (q(), letter()).prop_map(|(q, l)| Op::Put(q, l)),
        6 => (q(), letter()).prop_map(|(q, l)| Op::Putq(q, l)),
        2 => (q(), letter()).prop_map(|(q, l)| Op::Putbq(q, l)),
        2 => (q(), 0usize..20, letter()).prop_map(|(q, at, l)| Op::Insq(q, at, l)),
        5 => q().prop_map(Op::Getq),
        2 => q().prop_map(Op::GetAndPutBack),
        2 => (q(), 0usize..20).prop_map(|(q, at)| Op::Rmvq(q, at)),
        1 => (q(), any::<bool>()).prop_map(|(q, all)| Op::Flushq(q, all)),
        1 => (q(), band(), any::<bool>()).prop_map(|(q, b, all)| Op::Flushband(q, b, all)),
        5 => (q(), band()).prop_map(|(q, b)| Op::Canput(q, b)),
        2 => (q(), any::<bool>(), band(), 0usize..120).prop_map(|(q, h, b, n)| Op::SetMark(q, h, b, n)),
        1 => q().prop_map(Op::Noenable),
        1 => q().prop_map(Op::Enableok),
        1 => q().prop_map(Op::Qenable),
        4 => (0usize..8).prop_map(Op::Run),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn queues_do_what_the_model_does(ops in prop::collection::vec(op(), 1..60)) {
        let mut real = Real::new();
        let mut model = Model::new();
        for (step, op) in ops.iter().enumerate() {
            let (did, should) = real.apply(op, &mut model);
            prop_assert_eq!(did, should, "result of step {}: {:?}", step, op);
            prop_assert_eq!(real.state(), model.state(), "after step {}: {:?}", step, op);
        }
    }
}
