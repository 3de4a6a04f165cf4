package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// verifyLanes names lanes that were routed and have no checkpoint.
func verifyLanes(t *schemas.Topic, entries []registry.Shard, routed map[string]checkpoint.Checkpoint) (problems []string) {
	said := map[int]bool{}
	for _, e := range entries {
		if _, ok := routed[strconv.Itoa(e.ID.Lane())]; !ok && !said[e.ID.Lane()] {
			said[e.ID.Lane()] = true
			problems = append(problems, fmt.Sprintf("%s: the lane has shards and no checkpoint: its router waits for `almanac repair %s`",
				schemas.RoutedSubject(t.Name, strconv.Itoa(e.ID.Lane())), t.Name))
		}
	}
	for lane, cp := range routed {
		if cp.Unread > 0 {
			problems = append(problems, fmt.Sprintf("%s: %d messages of %s could not be read when the lane was routed: what was in them is lost unless their producers sent it again",
				schemas.RoutedSubject(t.Name, lane), cp.Unread, schemas.StreamEvents))
		}
	}
	return problems
}

// verifyEntry compares an entry's range with the frames and rows of its shard:
// readers prune by it, so it must cover them.
func verifyEntry(s *ShardReport, e registry.Shard, h *held, st tables.Count) {
	lo, hi := e.MaxTs, e.MinTs
	if e.Status == registry.Closed && s.Erased > 0 {
		h = nil // its range is that of its rows, and its frames have what was erased too
	}
	if h != nil {
		lo, hi = h.minTs, h.maxTs
	}
	if st.Rows > 0 {
		lo, hi = min(lo, st.MinTs), max(hi, st.MaxTs)
	}
	if (h != nil || st.Rows > 0) && (lo < e.MinTs || hi > e.MaxTs) {
		s.problem("the registry has it from %s to %s, its events are from %s to %s: readers may pass over it",
			stamp(e.MinTs), stamp(e.MaxTs), stamp(lo), stamp(hi))
	}
}

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// verifyHead names active shards the registry lacks, and shards no sink will seal.
func verifyHead(h registry.Head, entries map[schemas.Shard]registry.Shard) (problems []string) {
	for lane, id := range h.Active {
		if _, ok := entries[id]; !ok {
			problems = append(problems, fmt.Sprintf("%s: active in lane %d, the registry has no entry of it: the lane waits", schemas.PublicShardName(h.Topic, h.Month, id), lane))
		}
	}
	return problems
}

// months names months that have shards and no head entry, and gives the
// entries by shard. Head entries are read first: what is active in one has an
// entry then. It must run after the frames were read: then entries cover them.
func (v *Verifier) months(ctx context.Context, t *schemas.Topic) (problems []string, byID map[schemas.Shard]registry.Shard, err error) {
	heads, err := v.reg.Heads(ctx, t.Name)
	if err != nil {
		return nil, nil, err
	}
	entries, err := v.reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return nil, nil, err
	}
	has := map[schemas.Month]bool{}
	byID = make(map[schemas.Shard]registry.Shard, len(entries))
	for _, e := range entries {
		byID[e.ID] = e
	}
	for _, h := range heads {
		has[h.Month] = true
		problems = append(problems, verifyHead(h, byID)...)
	}
	for _, e := range entries {
		if has[e.Month] {
			continue
		}
		has[e.Month] = true
		lacks, err := v.lacksHead(ctx, t.Name, e.Month)
		if err != nil {
			return nil, nil, err
		}
		if lacks {
			problems = append(problems, fmt.Sprintf("%s: the registry has shards of the month and no head entry: readers do not find them", schemas.HeadKey(t.Name, e.Month)))
		}
	}
	return problems, byID, nil
}

// headLooks and headPause bound how long a router may take between the first shard
// entry of a month and its head entry: two writes in a row, but on a busy server.
const (
	headLooks = 10
	headPause = 100 * time.Millisecond
)

// lacksHead reports whether a month that has shards has no head entry, also after the
// time a router takes to write it.
func (v *Verifier) lacksHead(ctx context.Context, topic string, m schemas.Month) (bool, error) {
	tick := time.NewTicker(headPause)
	defer tick.Stop()
	for range headLooks {
		heads, err := v.reg.Heads(ctx, topic)
		if err != nil || slices.ContainsFunc(heads, func(h registry.Head) bool { return h.Month == m }) {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
	return true, nil
}

// unreadableEnds names shards whose last frame SHARDS counts and cannot read.
func (v *Verifier) unreadableEnds(ctx context.Context, topic string) (problems []string, err error) {
	counts, err := v.frameCounts(ctx, topic)
	if err != nil {
		return nil, err
	}
	for subject := range counts {
		_, err := streams.DecideLast(ctx, v.js, schemas.StreamShards, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			problems = append(problems, fmt.Sprintf("%s: its last frame in %s is damaged and cannot be read", subject, schemas.StreamShards))
		case err != nil:
			return nil, fmt.Errorf("verify: %s: %w", subject, err)
		}
	}
	return problems, nil
}
