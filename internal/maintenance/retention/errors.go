package retention

import "errors"

var (
	// ErrKeepTime: routed messages would leave EVENTS while readers still look for
	// them there.
	ErrKeepTime = errors.New("too short a time in EVENTS")
	// ErrGap: SHARDS does not hold the last frame of a closed shard. Its frames stay.
	ErrGap = errors.New("gap in the shard")
	// ErrCameBack: rows stood in a shard that is dropped, or was erased whole. A sink
	// that stalled over the drop stored its frames again; they are dropped again.
	ErrCameBack = errors.New("rows of a dropped shard came back")
	// ErrUnverified: ClickHouse holds other rows than the frames brought. The
	// janitor keeps the frames.
	ErrUnverified = errors.New("stored rows differ from the frames")
	// ErrEndLost: EVENTS ends before where it ended, or has other messages there.
	ErrEndLost = errors.New("the stream lost its end")
)
