package faults

import "time"

// Role is what a process is.
type Role string

// The roles.
const (
	RoleNATS Role = "nats"
	// RolePeer is one of three NATS servers that elect; only where the plan asks for them.
	RolePeer     Role = "peer"
	RoleEngine   Role = "engine"
	RoleRouter   Role = "router"
	RoleSink     Role = "sink"
	RoleProducer Role = "producer"
	// RoleTimers calls timers back; only where the plan has dispatchers.
	RoleTimers Role = "timers"
	// RoleRollups looks for repeats and sums; only where the plan has rollups.
	RoleRollups Role = "rollups"
	// RoleDocuments changes documents; a test starts it itself.
	RoleDocuments Role = "documents"
)

// Roles are those of an event's way, in the order of an event's way backwards: what is needed first comes first.
var Roles = []Role{RoleNATS, RoleEngine, RoleRouter, RoleSink, RoleProducer}

// PartEnv makes the test binary a part. Its value is a Spec as JSON.
const PartEnv = "ALMANAC_FAULT_PART"

// Spec says what a process shall be.
type Spec struct {
	Role Role
	Name string
	// Dir holds the data of a server.
	Dir string
	// NATS and ClickHouse are the addresses to connect to, credentials included.
	NATS, ClickHouse string

	// Ports a server listens on.
	Port, HTTPPort int
	// Routes are the addresses by which the servers that elect reach each other; HTTPPort is a peer's own.
	Routes string
	// StoreBytes bounds all streams of NATS together, FreeBytes is the space it comes back at after a full disk.
	StoreBytes, FreeBytes int64

	// CrashAt is the named point at which a router, sink or rollups kills itself, the CrashHit-th time it comes there.
	CrashAt  string
	CrashHit int

	// Linger, BatchRows, Housekeeping, InsertTimeout and Keep are the sink's.
	Linger, Housekeeping, InsertTimeout, Keep time.Duration
	BatchRows                                 uint64
	// Ahead is how far the clock of the sink's janitor is before the machine's.
	Ahead time.Duration

	Writer Writer
}

// Writer is what a producer process does.
type Writer struct {
	Topic   string
	Journal string
	// Number is the upper half of every number this process writes; no other process ever has the same.
	Number uint64
	// Rate is events a second; Events is when to stop by itself, 0: when told. A writer of documents changes so many.
	Rate, Events int
	// Policy, BufferEvents and Linger (default 100 ms) are the producer's.
	Policy       string
	BufferEvents int
	Linger       time.Duration
	// From is where its clock begins, unix ns; 0: it is the machine's.
	From int64
	// Step is how far its clock jumps, back and forth, every second.
	Step time.Duration
}
