//! haproxy relays with splice(2), which only the kernel can do.

use headwater_e2e::lab::noise;
use headwater_e2e::{Lab, Running, both, network};
use headwater_testkit::needs;

use super::{configure, fetched, shown};

const HAPROXY: &str = "
global
    nbthread 2
defaults
    mode {mode}
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    option splice-request
    option splice-response
frontend all
    bind 127.0.0.1:{port}
    default_backend files
backend files
    server one 127.0.0.1:{behind}
";

const NGINX: &str = "
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server { listen 127.0.0.1:{behind}; root {folder}/www; }
}
";

fn behind(lab: &Lab, port: u16) -> Running {
    let www = lab.path("www");
    std::fs::create_dir(&www).expect("the lab's folder is writable");
    std::fs::write(www.join("large"), noise(8 << 20)).expect("it is writable");
    std::fs::write(www.join("small"), noise(3000)).expect("it is writable");
    let folder = shown(&lab.path(""));
    let values = [
        ("folder", folder.trim_end_matches('/')),
        ("behind", &port.to_string()),
    ];
    configure(lab, "nginx.conf", NGINX, &values);
    let mut c = lab.command("nginx");
    c.args(["-e", "stderr", "-c"]).arg(lab.path("nginx.conf"));
    lab.serve(c, port)
}

#[test]
fn relays_what_a_server_behind_it_sends() {
    needs!("haproxy", "nginx", "curl");
    for mode in ["tcp", "http"] {
        let lab = both(|lab| {
            let [port, hidden] = network::free_ports();
            let _server = behind(lab, hidden);
            let values = [
                ("mode", mode),
                ("port", &*port.to_string()),
                ("behind", &hidden.to_string()),
            ];
            configure(lab, "haproxy.cfg", HAPROXY, &values);
            let mut c = lab.command("haproxy");
            c.args(["-db", "-f"]).arg(lab.path("haproxy.cfg"));
            let _proxy = lab.serve(c, port);
            let url = |name: &str| format!("http://127.0.0.1:{port}/{name}");
            let single = ["small", "large", "small", "large"].map(|name| fetched(lab, &url(name)));
            // Many requests on one connection, the large ones last.
            let mut c = lab.command("curl");
            c.args(["-sS", "--fail", "-q"]);
            for _ in 0..20 {
                c.arg(url("small"));
            }
            c.args([url("large"), url("large"), url("large")]);
            let kept = headwater_e2e::lab::digest(&lab.run(c).ok());
            (single, kept)
        });
        // The requests on one connection; what is spliced goes on by the kernel.
        lab.assert_part_carried(1000);
    }
}
