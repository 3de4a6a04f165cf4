package router

import "errors"

var (
	// ErrLostLane: another router committed on the lane. The lane's run ends and
	// ownership is looked at again.
	ErrLostLane = errors.New("another router works this lane")
	// ErrRolledBack: EVENTS and the checkpoint in SHARDS do not fit: one of them
	// lost its end, or was restored from a copy. The lane stops until an operator
	// looks: going on could skip or repeat events.
	ErrRolledBack = errors.New("a stream was rolled back")
	// ErrForked: a shard has other frames in ClickHouse than in SHARDS, which was restored
	// from an older copy. The lane goes on in another shard.
	ErrForked = errors.New("a shard forked")
	// ErrCutOff: EVENTS lost its end and gives its sequences again. The lane knows
	// where it stands and goes on by itself.
	ErrCutOff = errors.New("EVENTS lost its end")
	// ErrNoCheckpoint: the lane was routed before and its checkpoint is gone. The
	// lane stops until `almanac repair` writes it again: to begin from the front would
	// route events twice.
	ErrNoCheckpoint = errors.New("the lane's checkpoint is lost")
	// ErrDamaged: SHARDS has a message that it cannot read.
	ErrDamaged = errors.New("a message is damaged")
	// ErrStaleSeq: a frame's sequence lies further behind its producer's highest
	// than any frame in flight can; whether it was routed cannot be told, so it
	// is kept as a dead letter.
	ErrStaleSeq = errors.New("frame sequence too far behind its producer's")
	// errRemoved: something was sent under the name of a topic that was removed.
	errRemoved = errors.New("the topic was removed")
	// ErrShardsFull: SHARDS has no room for the batch. The lane tries one of half
	// as many messages: were a batch larger than what the janitor leaves free, a
	// stream that is almost full would refuse it forever.
	ErrShardsFull = errors.New("SHARDS is full")
)
