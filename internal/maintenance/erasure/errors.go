package erasure

import "errors"

var (
	// ErrRequest: what was asked for cannot be done; the message says why.
	ErrRequest = errors.New("cannot erase")
	// ErrNotStored: what was accepted before the erasure is not stored yet.
	ErrNotStored = errors.New("not everything is stored yet")
	// ErrLate: SHARDS no longer has the frames that tell which of a shard's positions
	// came before the fence.
	ErrLate = errors.New("too late to tell events apart")
	// ErrNotGone: rows are still in a part that is read, after every attempt.
	ErrNotGone = errors.New("rows are still there")
	// ErrUnstored: ClickHouse lacks rows that the streams may be all to have.
	ErrUnstored = errors.New("not everything in the streams is in ClickHouse")
	// ErrStillThere: the streams still hold events the entry is needed for.
	ErrStillThere = errors.New("the streams still hold such events")
)
