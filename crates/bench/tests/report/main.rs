//! What people look at: the results as JSON, CSV, SVG and HTML, and two runs beside each other.

mod browser;
mod chromium;
mod compare;
mod files;
mod fixture;
mod json;
mod schema;
