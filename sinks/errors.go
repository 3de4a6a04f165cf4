package sinks

import "errors"

var (
	// ErrGap: SHARDS does not hold the frame that must come next. The shard
	// stops; nothing behind the gap is stored until it is repaired.
	ErrGap = errors.New("gap in the shard")
	// ErrUnknown: the registry lost a shard's entry, and ClickHouse has no row of it. Retention
	// may have dropped it: its frames are left alone until a repair has put the entry back.
	ErrUnknown = errors.New("the registry has no entry of the shard")
	// ErrForked: SHARDS holds another frame at the head than the one that is stored.
	// It was restored from an older copy. The shard leaves its lane, and what ClickHouse lacks goes to another.
	ErrForked = errors.New("the stream and the table differ at the head")
	// ErrWentBack: ClickHouse lost rows of a shard while this sink looked at it. It stores them again from SHARDS; a shard
	// that left its lane waits until they are restored.
	ErrWentBack = errors.New("the table lost rows meanwhile")
	// ErrUnverified: ClickHouse holds other rows than the frames brought. It
	// is reported; verify names the positions.
	ErrUnverified = errors.New("stored rows differ from the frames")
)
