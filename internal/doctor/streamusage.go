package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/schemas"
)

// streamUsage is how full a stream is, in bytes; a limit below 1 is none.
type streamUsage struct {
	used  uint64
	limit int64
	keys  uint64 // of a front
}

// tight is the share from which a stream's owner should hear of it; the janitor
// gives up the replay window there.
const tight = 0.8

// free is what writes of a purpose may still add to a front.
func (r streamUsage) free(p fronts.Purpose, stream string) int64 {
	u := fronts.Use{Stream: stream, Keys: r.keys, Bytes: r.used, Limit: r.limit}
	return u.Free(p)
}

// tight reports whether the owner should hear how full a stream is.
func (r streamUsage) tight(stream string) bool {
	return r.share() >= tight || front(stream) && r.limit > 0 && r.free(fronts.Grow, stream) <= r.limit/10
}

// doubled is twice a bound, as a size for a command line.
func doubled(limit int64) string {
	mib := max(limit>>20, 1) * 2
	if mib%1024 == 0 {
		return fmt.Sprintf("%dGiB", mib/1024)
	}
	return fmt.Sprintf("%dMiB", mib)
}

func (r streamUsage) share() float64 {
	if r.limit <= 0 {
		return 0
	}
	return float64(r.used) / float64(r.limit)
}

// full: the largest frame does not fit any more.
func (r streamUsage) full() bool {
	return r.limit > 0 && int64(r.used) > r.limit-schemas.MaxFrameBytes
}

func (r streamUsage) String() string {
	if r.limit <= 0 {
		return schemas.FormatBytes(float64(r.used)) + " without a bound"
	}
	return fmt.Sprintf("%s of %s, %.0f %% full", schemas.FormatBytes(float64(r.used)), schemas.FormatBytes(float64(r.limit)), 100*r.share())
}

// result is what a stream's fill means, and what to do about it.
func (r streamUsage) result(stream string) (status, do string) {
	wider := fmt.Sprintf("or give it more room: almanac streams apply %s --bytes %s", stream, doubled(r.limit))
	switch {
	case !r.tight(stream):
		return OK, ""
	case stream == schemas.StreamShards && r.full():
		return Fail, "nothing in it is dropped; routers wait, and EVENTS fills next. Bring ClickHouse and the sinks back, " + wider
	case stream == schemas.StreamShards:
		return Warn, "see that ClickHouse and the sinks keep up: when it is full, EVENTS fills next; " + wider
	case front(stream) && r.free(fronts.End, stream) < schemas.MaxFrameBytes:
		return Fail, "nothing in it is dropped, and no record is written. See that ClickHouse and the sinks keep up: what is archived leaves it, " + wider
	case front(stream) && r.free(fronts.Grow, stream) <= 0:
		return Warn, "nothing new is taken, and the rest is for what is due, removals and ends. See that ClickHouse and the sinks keep up: what is archived leaves it, remove some, " + wider
	case front(stream):
		return Warn, "see that ClickHouse and the sinks keep up: what is archived leaves it; when it is full, nothing new is taken; " + wider
	case stream == schemas.KVStream:
		return Warn, "when it is full, no shard, topic, lease or job is written, and all stands still: " + strings.TrimPrefix(strings.Replace(wider, schemas.KVStream, "REGISTRY", 1), "or ")
	case r.full(): // EVENTS, as below: the others are above
		return Fail, "nothing in it is dropped, and nothing more is accepted. See that SHARDS has room and that routers are alive, " + wider
	default:
		return Warn, "see that routers and sinks keep up: when it is full, nothing more is accepted; " + wider
	}
}

// front reports whether a stream holds records of keys, which the cleaner frees.
func front(stream string) bool { return stream == schemas.StreamDocs || stream == schemas.StreamTimers }

// producers says what producers do now, as far as it follows from the streams.
func (c *check) producers(clickhouse bool) {
	events, ok := c.usage[schemas.StreamEvents]
	shards := c.usage[schemas.StreamShards]
	switch {
	case !ok || c.storeOff:
		c.note("producers", Fail, "see to NATS first", "nothing is accepted: events wait in the producers' buffers, then %s", policies)
	case events.full():
		c.note("producers", Fail, "see to what holds up EVENTS and SHARDS; what waits in producers follows by itself",
			"EVENTS is full, nothing is accepted: events wait in the producers' buffers, then %s", policies)
	case events.share() >= tight || shards.share() >= tight || !clickhouse:
		c.note("producers", Warn, "",
			"events are accepted until EVENTS is full (%.0f %%, SHARDS %.0f %%); then they wait in the producers' buffers, then %s",
			100*events.share(), 100*shards.share(), policies)
	default:
		c.note("producers", OK, "", "events are accepted")
	}
}

// policies is what producers do whose buffer is full.
const policies = "each does what its policy says: drop_newest and drop_oldest drop and count, block waits, spool goes to disk"

// longestReceive is how long ClickHouse may wait for the rest of an insert when
// events shall flow again ten seconds after whatever stopped them.
const longestReceive = 10 * time.Second

// doStoreOff is for a server that answers and stores nothing.
const doStoreOff = "see that JetStream is on. If its disk is or was full or failing: free some, then restart the NATS server, which stores " +
	"nothing until then (the one inside almanac up restarts by itself). What it acknowledged is kept"

// isStoreOff: the server is there, JetStream is not.
func isStoreOff(err error) bool {
	return errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded)
}
