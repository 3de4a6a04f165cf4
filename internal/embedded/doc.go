// Package embedded runs the two servers of Almanac inside one process tree: a NATS server with JetStream in this very
// process, and a real ClickHouse as its child. It is what makes one command enough. Production points at servers of
// its own and uses none of this.
//
// # Model
//
//	DataDir     one directory, one owner: a lock, a format number, the address file
//	NATS        a nats-server object; file store, fsync before every acknowledgement
//	ClickHouse  a child process; Find says which engine, Run keeps it alive
//
// Each server has the same life:
//
//	New ──▶ Run(ctx) ──▶ ready ◀──▶ down (restarts by itself, same ports, same data) ──▶ stopped (ctx ended)
//	              └────▶ failed: Run and WaitReady return the same error, nothing is left running
//
// Run blocks. It returns nil when its context ended and an error when the server could not start the first time. Once
// ready, Run does not give up, but for ErrHung: it restarts what died and says so through the LogFunc. The package writes no log of its
// own.
//
// # Who is authoritative
//
// The lock on the data directory says who runs there. The address file only says where to connect. It is believed only
// while the lock is held. Passwords live in one file for each server (mode 0600), made at the first start. The
// engine sees their hashes. The parts of `up` are users of NATS (internal/access), and so are its clients: without credentials they
// are the user local, who may send. Ports that were given are taken or refused, never replaced. Ports left at 0 are chosen at
// the first start and kept for the life of the process, so that clients reconnect.
//
// # The engine
//
// An explicit DSN comes first and starts no child. Then a `clickhouse` program on PATH, 26.2 or later, run as
// `clickhouse server`: that mode exists in every such version, while `clickhouse local` learned to listen only in
// 26.6, and a server stops in order on SIGTERM. Then libchdb, the same engine as a shared library, which has only the
// local mode: the child is this binary, called with [EngineCommand], and it becomes `clickhouse local` with listeners.
// Both write one layout, so that a data directory may be taken over by the other.
//
// Either way the child is this binary first. It gives up every right to files and ports that are not the engine's, and
// executes what it is to be (access.go, confine_linux.go). SQL has more ways to a file than grants can name, so the
// kernel refuses them all. Its environment is its own too. Where the kernel cannot do that, Confines is false.
//
// The local mode opens its own session as the user `default` without a password from loopback, and nothing in 26.7
// lets it do otherwise. So `default` cannot log in by HTTP (config.xml has the rule), and may do one thing, SYSTEM LISTEN,
// with a quota of the one statement that the start needs and one statement at a time. The session opens the HTTP port;
// Almanac opens the other one when the session sleeps, so that no client takes the session's place.
// Almanac's parts connect as the users of access.ClickHouseUsers, people's SQL as [UserReader].
//
// # Failures
//
//	port taken                 start error ErrPortInUse with address and port
//	directory of another run   ErrDirBusy with the owner's pid and start time
//	directory not ours         ErrDirForeign; of another format: ErrDirVersion
//	no engine                  ErrNoEngine, names the three ways to get one
//	disk full                  the stream that met it, or all of JetStream, takes nothing more until the server restarts;
//	                           Healthy says so, Run restarts the server object on the same port once there is space
//	NATS hangs                 no answer for HungAfter: Run returns ErrHung, the caller ends the process (docs/upstream.md)
//	a client is rude           the engine library runs with a terminal and --interactive, or a client that hangs up would
//	                           end it (docs/upstream.md)
//	engine dies                Run starts it again with growing pauses, same ports and data
//	kernel without Landlock    a warning: the engine runs, and reads what its user may read
//	engine does not stop       SIGTERM, then SIGKILL after StopTimeout; what was acknowledged is on disk either way
//	this process is killed     the child has a parent-death signal (Linux) and a pipe whose end it watches (libchdb):
//	                           it ends too
//	main forgot EngineMain     the child would start a second Almanac: ErrNested stops that at once
package embedded
