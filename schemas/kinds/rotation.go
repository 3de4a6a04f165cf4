package kinds

import "time"

// Rotation is when a shard is sealed and the next one begins: the first to
// trip, checked before each frame. Zero switches a threshold off.
type Rotation struct {
	Rows  uint64 `json:"rows" yaml:"rows"`
	Bytes uint64 `json:"bytes" yaml:"bytes"`
	// Span divides the time of events from 1970 on. The first event of a later span begins a
	// shard. Late events stay where the lane is.
	Span time.Duration `json:"span" yaml:"span"`
}

// Default and test-profile rotation. 10,000,000 rows or 2 GiB (encoded) make a
// part ClickHouse still merges at once and a partition that drops in
// milliseconds; 50,000 rows is the profile that shows rotation on a laptop.
const (
	DefaultRotateRows  = 10_000_000
	DefaultRotateBytes = 2 << 30
	TestRotateRows     = 50_000
)

var defaultRotation = Rotation{Rows: DefaultRotateRows, Bytes: DefaultRotateBytes}

// FrontLanes is the default number of lanes of a kind with a front: its records are written
// one by one by compare-and-set, and its lanes are what dispatchers and cleaners share.
const FrontLanes = 4
