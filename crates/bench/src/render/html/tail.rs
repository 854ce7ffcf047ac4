//! What one may ask after the figures: what is not there, on what it was measured, how, and how to do it again.

use maud::{Markup, html};

use super::{capital, code};
use crate::results::Run;
use crate::tables;

pub fn skipped(run: &Run) -> Markup {
    if run.skipped.is_empty() {
        return html! {};
    }
    html! {
        section id="skipped" aria-labelledby="skipped-title" {
            h2 id="skipped-title" { "What was skipped" }
            dl class="plain" { @for skipped in &run.skipped { div { dt { (skipped.name) } dd { (skipped.why) } } } }
        }
    }
}

pub fn machine(run: &Run) -> Markup {
    html! {
        section id="machine" aria-labelledby="machine-title" {
            h2 id="machine-title" { "The machine" }
            dl class="plain" { @for (name, text) in run.machine.lines() { div { dt { (capital(name)) } dd { (text) } } } }
        }
    }
}

pub fn method(run: &Run) -> Markup {
    html! {
        section id="method" aria-labelledby="method-title" {
            h2 id="method-title" { "The method" }
            p {
                "Every arm of a cell is run once, in turn, then all again: A B C, A B C, so that whatever drifts drifts for all. "
                "Each sample starts its programs afresh; ours warm up and run for a fixed time, others do an amount of work that takes about as long. A ratio is the median of the ratios "
                "within the rounds; its interval comes from a bootstrap over the rounds, which assumes nothing about how the figures are spread."
            }
            p {
                "What arrives is compared with what was sent, and losses are counted. An accelerated sample counts only where the library "
                "counted accelerated connections and the kernel's loop-back device did not see the traffic; of connections that are "
                "too short to be carried, only where the library was loaded. "
                "A round that the machine disturbed is taken again"
                @match run.disturbed_rounds {
                    0 => { "; in this run none was" }
                    1 => { "; in this run that was one" }
                    count => { "; in this run those were " (count) }
                }
                @if run.disturbed_kept > 0 { ", of which " (run.disturbed_kept) " still were, and count" }
                "."
            }
            p {
                "System calls, context switches and wake-ups are those of both ends, per message. System calls are counted in runs of their own."
            }
        }
    }
}

pub fn reading() -> Markup {
    html! {
        section id="reading" aria-labelledby="reading-title" {
            h2 id="reading-title" { "How to read this" }
            dl class="plain" { @for row in tables::READING.iter() { div { dt { (row.word) } dd { (capital(&row.meaning)) } } } }
        }
    }
}

pub fn again(run: &Run) -> Markup {
    html! {
        section id="again" aria-labelledby="again-title" {
            h2 id="again-title" { "How to repeat it" }
            pre tabindex="0" { (code(&run.command)) }
            p { "On another machine, or a busier one, other figures will come out; " (code("headwater bench --compare OLD.json NEW.json")) " tells what differs beyond the noise." }
        }
    }
}
