// An echo server, and eight clients that each send two megabytes in pieces and read them back.
const net = require("net");
const crypto = require("crypto");
const [, , role, port] = process.argv;

function serve() {
  net.createServer((socket) => socket.pipe(socket)).listen(+port, "127.0.0.1");
  process.on("SIGTERM", () => process.exit(0));
}

function call(name) {
  return new Promise((resolve, reject) => {
    const piece = Buffer.alloc(16384, name);
    const pieces = 128;
    const hash = crypto.createHash("sha256");
    let sent = 0;
    let received = 0;
    const socket = net.connect(+port, "127.0.0.1");
    const next = () => {
      // One piece after the other: its echo is the sign to go on.
      if (sent < pieces) {
        sent++;
        socket.write(piece);
      } else {
        socket.end();
      }
    };
    socket.on("connect", next);
    socket.on("data", (data) => {
      hash.update(data);
      received += data.length;
      if (received === sent * piece.length) next();
    });
    socket.on("end", () => resolve(`${name} ${received} ${hash.digest("hex")}`));
    socket.on("error", reject);
  });
}

if (role === "serve") {
  serve();
} else {
  Promise.all([..."abcdefgh"].map(call)).then((lines) => console.log(lines.join("\n")));
}
