package schemas

import "time"

// Limits of one event and one frame. Larger is refused with both numbers.
const (
	// MaxEventBytes bounds one event: the sum of its strings. 64 KiB is ten
	// times the largest line seen in common application logs and still lets a
	// frame hold several.
	MaxEventBytes = 64 << 10
	// MaxFrameBytes bounds an encoded frame on the wire. Half of the NATS
	// server's default max_payload (1 MiB), so headers always fit beside it.
	MaxFrameBytes = 512 << 10
	// MaxMessageBytes bounds any message of EVENTS, headers and all. It stays
	// below max_payload by what the router adds to a dead letter, so that nothing
	// accepted can be too large to be kept.
	MaxMessageBytes = 1<<20 - 16<<10
	// MaxFrameRawBytes bounds a frame once decompressed, so that a hostile
	// frame cannot make a reader allocate without end.
	MaxFrameRawBytes = 8 << 20
	// MaxFrameRows bounds the events of a frame a router accepts. Producers
	// close a frame far earlier (FrameRows).
	MaxFrameRows = 65536
	// MaxSameIDs bounds the events of one id that come in one frame, or one message of JSON, of a topic that
	// has events once. A router makes as many frames of it, in the one batch that takes 1,000 messages. Producers close
	// a frame before it has more, and 16 events a frame still carry a client that repeats one event without end.
	MaxSameIDs = 16
	// MaxAttrs bounds the attributes of one event.
	MaxAttrs = 256
	// MaxAttrKeyBytes bounds one attribute's name.
	MaxAttrKeyBytes = 256
	// AttrNumberBytes are what the number of a name that comes again takes of them.
	AttrNumberBytes = len("#256")
	// MaxFields bounds the promoted fields of a topic: each is a column, and
	// each column is a file in every wide part.
	MaxFields = 64
)

// When a producer closes a frame: the first of these to trip.
const (
	// FrameRows is where larger frames stop paying.
	FrameRows = 2000
	// FrameRawBytes leaves room below MaxFrameBytes for what frame.Builder.RawBytes
	// does not count (frame.Builder.Fits has the bound), and is 213 bytes for each of
	// FrameRows events. JetStream fsyncs once a frame, so a frame should not be
	// smaller than it must.
	FrameRawBytes = 416 << 10
	// FrameLinger is how long a frame waits for company, where little comes.
	FrameLinger = 20 * time.Millisecond
)

// MaxFuture is how far ahead of the clock an event's time may lie. A day covers
// every time-zone mistake and keeps a wrong clock from opening months to come.
const MaxFuture = 24 * time.Hour

// MaxInFlight is the number of frames of one lane a producer keeps unanswered:
// the width of the router's anti-replay bitmap.
const MaxInFlight = 64

// DedupWindow is the duplicate window of EVENTS. Beyond it the router's
// anti-replay window holds, so it only has to cover ordinary retries cheaply.
const DedupWindow = 10 * time.Minute
