package main

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// natsTrouble is why a connection cannot be used now.
func natsTrouble(nc *nats.Conn) []ops.Reason {
	if nc.IsConnected() {
		return nil
	}
	return []ops.Reason{ops.Because(ops.Away, "no connection to NATS, trying again")}
}

// leaderTrouble is why streams take and give nothing now, although a server of NATS answers.
func leaderTrouble(ctx context.Context, nc *nats.Conn, names ...string) []ops.Reason {
	if trouble := natsTrouble(nc); len(trouble) > 0 {
		return trouble
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return []ops.Reason{ops.Because(ops.Away, "%v", err)}
	}
	without := streams.Leaderless(ctx, js, names...)
	if len(without) == 0 {
		return nil
	}
	return []ops.Reason{ops.Because(ops.NoLeader, "%s: no leader answers; the servers elect one within 10 s, where a majority of them runs", strings.Join(without, ", "))}
}

// clickHouseTrouble is why ClickHouse cannot be used now. What a connection says does not name it.
func clickHouseTrouble(err error) []ops.Reason {
	if err == nil {
		return nil
	}
	if errors.Is(err, tables.ErrAccount) {
		return []ops.Reason{ops.Because(ops.Unaccepted, "%s", inWords(err))}
	}
	return []ops.Reason{ops.Because(ops.Away, "no answer of ClickHouse: %v", err)}
}

// ownNATSTrouble is why the embedded NATS stores nothing now.
func ownNATSTrouble(err error) []ops.Reason {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, embedded.ErrStoreOff), errors.Is(err, embedded.ErrDiskSpace):
		return []ops.Reason{ops.Because(ops.DiskFull, "%v", err)}
	}
	return []ops.Reason{ops.Because(ops.Away, "%v", err)}
}

// stalled is why a pool takes nothing now.
func stalled(p *pool.Pool) []ops.Reason {
	s := p.Stalled()
	word := map[pool.Kind]ops.Word{pool.Away: ops.Away, pool.Full: ops.StreamFull, pool.Slow: ops.Stalled}[s.Kind]
	if word == "" {
		return nil
	}
	return []ops.Reason{ops.Because(word, "%s", s.Says)}
}

// waitsFor is what a start that failed, and is tried again, waits for.
func waitsFor(err error) ops.Reason {
	word := ops.Away
	switch {
	case errors.Is(err, tables.ErrAccount):
		word = ops.Unaccepted
	case errors.Is(err, schemas.ErrRestoring):
		word = ops.Recovering
	}
	return ops.Because(word, "not ready yet, trying again: %s", inWords(err))
}
