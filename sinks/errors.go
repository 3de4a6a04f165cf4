package sinks

import "errors"

var (
	// ErrGap: SHARDS does not hold the frame that must come next. The shard
	// stops; nothing behind the gap is stored until it is repaired.
	ErrGap = errors.New("gap in the shard")
	// ErrForked: SHARDS holds another frame at the head than the one that is stored.
	// It was rolled back, or ClickHouse was restored. The shard stops.
	ErrForked = errors.New("the stream and the table differ at the head")
	// ErrBurnt: token after token was found burnt, which no crash explains.
	ErrBurnt = errors.New("insert tokens keep being burnt")
	// ErrSettleTime: routed messages would leave EVENTS while readers still look for
	// them there.
	ErrSettleTime = errors.New("too short a time in EVENTS")
	// ErrCameBack: rows stood in a shard that is dropped, or was erased whole. A sink
	// that stalled over the drop stored its frames again; they are dropped again.
	ErrCameBack = errors.New("rows of a dropped shard came back")
	// ErrUnverified: ClickHouse holds other rows than the frames brought. The
	// janitor keeps the frames.
	ErrUnverified = errors.New("stored rows differ from the frames")
)
