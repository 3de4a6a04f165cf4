package schemas

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// This file holds the names that live outside the process. Those of one thing are beside it: the bucket's
// keys (keys.go), headers of fronts (fronts.go), derived tables (derivednames.go), views (viewnames.go),
// the columns of kinds (package kinds).

// Streams and the KV bucket.
const (
	StreamEvents = "EVENTS"
	StreamShards = "SHARDS"
	StreamDocs   = "DOCS"   // the front of documents
	StreamTimers = "TIMERS" // the front of timers
	Bucket       = "registry"
	BucketCopies = "copies" // the second copy of the registry's entries
)

// The storage policy of ClickHouse that a topic's table takes whose closed shards are to move, and the volume they move to.
const (
	StoragePolicy = "almanac"
	VolumeCold    = "cold"
)

// DiskDefault is the disk that every ClickHouse has, where its tables are unless a policy says otherwise.
const DiskDefault = "default"

// StreamTrial is the empty stream by which is found out how much a server may store. It is removed at once.
const StreamTrial = "ALMANAC_TRIAL"

// Roles of members: parts of which several share their work.
const (
	RoleRouter = "router"
	RoleSink   = "sink"
	RoleTimers = "timer"
	// RoleProbe is of no member: its leases are written to find out whether anything is stored.
	RoleProbe = "probe"
)

// tokenInbox begins the subjects of answers, as clients of NATS name them.
const tokenInbox = "_INBOX"

// First tokens of subjects.
const (
	tokenEvents = "events"
	tokenShards = "shards"
	tokenRouted = "routed"
	tokenDead   = "dead"
	tokenGiven  = "given"
	tokenDocs   = "docs"
	tokenLocks  = "doclocks"
	tokenTimers = "timers"
	// Of no stream: members probe each other there, and readers say that they wait for SQL.
	tokenMembers = "members"
	tokenWaiting = "waiting"
)

// Wildcards over the subjects of each stream.
const (
	SubjectsEvents = tokenEvents + ".>"
	SubjectsLanes  = tokenEvents + ".*.*.*"
	// SubjectsNoLane are those without a lane. EVENTS takes them and they become dead
	// letters: a client that publishes without asking for an answer would not hear that it does not.
	SubjectsNoLane = tokenEvents + ".*.*"
	SubjectsShards = tokenShards + ".*.*.*"
	SubjectsRouted = tokenRouted + ".*.*"
	SubjectsDead   = tokenDead + ".*"
	SubjectsGiven  = tokenGiven + ".*.*"
	// Of the fronts: a subject is one key, and its last message the key's record.
	SubjectsDocs     = tokenDocs + ".*.*.*"
	SubjectsDocLocks = tokenLocks + ".*.*.*"
	SubjectsTimers   = tokenTimers + ".*.*.*.*.*"
	// SubjectsWaiting is of no stream.
	SubjectsWaiting = tokenWaiting + ".*"
)

const (
	// SubjectRestoring is of StreamRestoring, for a stream must have one. Nothing is published there.
	SubjectRestoring = "almanac.restoring"
	// SubjectOwnRights is NATS's own: it answers a connection with what its user may do.
	SubjectOwnRights = "$SYS.REQ.USER.INFO"
)

// Frame headers. The first eight are the producer's, the rest the router's unless they say otherwise.
const (
	HeaderRows     = "Almanac-Rows"
	HeaderBytes    = "Almanac-Bytes" // of the decompressed block
	HeaderMinTs    = "Almanac-Min-Ts"
	HeaderMaxTs    = "Almanac-Max-Ts" // unix ns
	HeaderSchema   = "Almanac-Schema"
	HeaderProducer = "Almanac-Producer"
	HeaderSeq      = "Almanac-Seq"

	// HeaderPart says which part of a keyed request a frame is (Part). It stays in EVENTS.
	HeaderPart = "Almanac-Part"

	HeaderPos = "Almanac-Pos"
	// HeaderSourceFirst is of a frame that was made of a run of records: the sequence of
	// the first. HeaderSourceSeq is that of the last.
	HeaderSourceFirst = "Almanac-Source-First"
	HeaderSourceSeq   = "Almanac-Source-Seq"  // of the message in EVENTS
	HeaderSourceTime  = "Almanac-Source-Time" // when EVENTS stored that message, unix ns: with its sequence, its identity
	HeaderSourceEra   = "Almanac-Source-Era"  // Checkpoint.Era of the lane then; absent: 0
	HeaderPrev        = "Almanac-Prev"        // Digest of the frame before it in the shard
	HeaderShardRows   = "Almanac-Shard-Rows"  // rows of the shard up to and with this frame
	HeaderShardBytes  = "Almanac-Shard-Bytes" // encoded bytes, likewise
	HeaderShardIDs    = "Almanac-Shard-Ids"   // sum of the ids of the shard, likewise, 16 hex digits

	// HeaderCleared marks the last message of a shard whose frames are taken out of
	// SHARDS on purpose: it keeps the last frame's headers and no events. Its value
	// is why, ClearedDropped, ClearedAnonymised or ClearedErased.
	HeaderCleared = "Almanac-Cleared"

	// HeaderCount says how often an entry of the registry was written. It tells which of two
	// copies is newer: revisions say nothing after a bucket was lost.
	HeaderCount = "Almanac-Count"

	// HeaderBlank marks a message of EVENTS that stands for nothing: the janitor puts
	// it behind a lane's last message, which it may purge once that is routed over.
	HeaderBlank = "Almanac-Blank"

	HeaderReason        = "Almanac-Reason"         // dead letters: a word
	HeaderDetail        = "Almanac-Detail"         // dead letters: the whole error
	HeaderSourceSubject = "Almanac-Source-Subject" // dead letters: where it was published
	HeaderLine          = "Almanac-Line"           // dead letters: the line of an NDJSON message
	HeaderRules         = "Almanac-Rules"          // dead letters: privacy rules that were applied to the JSON (Topic.RuleMarks)
)

// routersHeaders are those that a router alone sets: nothing that a producer wrote
// under their names counts.
var routersHeaders = []string{
	HeaderPos, HeaderSourceFirst, HeaderSourceSeq, HeaderSourceTime, HeaderSourceEra, HeaderPrev, HeaderShardRows, HeaderShardBytes, HeaderShardIDs,
	HeaderCleared, HeaderBlank, HeaderReason, HeaderDetail, HeaderSourceSubject, HeaderLine, HeaderRules,
}

// WithoutRouters removes the headers that a router alone sets, and returns h.
func WithoutRouters(h nats.Header) nats.Header {
	for _, name := range routersHeaders {
		delete(h, name)
	}
	return h
}

// ReasonStaleSeq is the reason of a dead letter whose frame was too far behind its
// producer's to tell whether it had come before.
const ReasonStaleSeq = "stale-seq"

// Why a shard's frames were taken out of SHARDS, as HeaderCleared says it.
const (
	ClearedDropped    = "dropped"
	ClearedAnonymised = "anonymised"
	ClearedErased     = "erased"
)

// Columns that every table has, of whatever kind.
const (
	ColTs         = "ts"
	ColID         = "id"
	ColLevel      = "level"
	ColService    = "service"
	ColType       = "type"
	ColUserID     = "user_id"
	ColTraceID    = "trace_id"
	ColSpanID     = "span_id"
	ColMessage    = "message"
	ColAttributes = "attributes"

	ColMonth = "month"
	ColShard = "shard"
	ColPos   = "pos"

	// ColIdentity is computed of the columns that make events the same one. Only tables of
	// topics that have such columns have it.
	ColIdentity = "identity"

	// ColIDOrder is an alias of IDOrderSQL, for people: SELECT * does not show it.
	ColIDOrder = "id_order"
)

// DefaultDatabase is the ClickHouse database of the tables.
const DefaultDatabase = "almanac"

// engineInfix stands between the database of the tables and an engine's identity, in the name of
// the empty database that is the identity on the engine's disk.
const engineInfix = "_engine_"

var engineRule = regexp.MustCompile(`^[0-9a-f]{16}$`)

// EngineDatabase is the database that names an engine: an account of Almanac's must be allowed
// to make it.
func EngineDatabase(database, id string) string { return database + engineInfix + id }

// RestoringDatabase is there, empty, while a restore of the tables has not ended.
func RestoringDatabase(database string) string { return database + "_restoring" }

// EngineOf returns the identity that such a database is.
func EngineOf(database, name string) (id string, ok bool) {
	id, ok = strings.CutPrefix(name, database+engineInfix)
	return id, ok && ValidEngine(id)
}

// ValidEngine reports whether id can be an engine's identity.
func ValidEngine(id string) bool { return engineRule.MatchString(id) }

var reservedColumns = []string{
	ColTs, ColID, ColLevel, ColService, ColType, ColUserID, ColTraceID, ColSpanID,
	ColMessage, ColAttributes, ColMonth, ColShard, ColPos, ColIDOrder,
}

var NamePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

func validName(s string) bool { return NamePattern.MatchString(s) }

// NoTopic stands in for the topic of what was published under no possible one. A
// topic's name cannot begin so.
const NoTopic = "_"

// MsgID is the duplicate-window id of a frame. Sequences count per producer,
// topic and lane, so all three are in it.
func MsgID(producer, topic string, lane int, seq uint64) string {
	return producer + "." + topic + "." + strconv.Itoa(lane) + "." + strconv.FormatUint(seq, 10)
}

// KVStream is the stream behind the bucket.
const KVStream = "KV_" + Bucket

// CopiesStream is the stream behind the bucket of copies.
const CopiesStream = "KV_" + BucketCopies
