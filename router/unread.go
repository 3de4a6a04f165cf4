package router

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
)

// A NATS server passes over a message whose bytes were damaged on disk without a
// word, and goes on counting it as pending. So when a lane has been quiet for a
// while although messages were said to be pending, and once after it begins, its
// router looks whether there are such. They were accepted and are lost, unless
// their producer sends them again: they are counted in the checkpoint, where
// verify finds them.

// quiet is how long a feed is silent before that is looked at: far above what a
// server that can read takes to deliver.
const quiet = 2 * time.Second

// countUnread looks for messages that were counted and could not be read. pending
// is what the server said followed the last message that came.
func (l *lane) countUnread(ctx context.Context, pending uint64) error {
	info, err := streams.Info(ctx, l.js, l.stream())
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	readable := false
	behind, err := streams.Headers(ctx, l.js, l.stream(), l.filter, l.cp.Source+1, func(*streams.Message) error {
		readable = true
		return nil
	})
	if err != nil || readable {
		return err // on its way
	}
	n := max(behind, pending-min(pending, l.unread))
	if l.front != "" {
		n = behind // what was pending may have been erased meanwhile
	}
	if n == 0 {
		return nil
	}
	l.unread = max(l.unread, pending)
	l.cp.Unread += n
	if behind > 0 && info.State.LastSeq > l.cp.Source && info.Config.Replicas <= 1 {
		// Nothing up to there can be read: the next run need not count it again.
		l.cp.At = l.cp.Anchor()
		l.cp.Source = info.State.LastSeq
	}
	if err := l.commit(ctx, newBatch()); err != nil {
		return err
	}
	l.cfg.Hooks.fault(l.topic, l.token, fmt.Errorf("router: %s: %w: %d messages up to message %d of %s were counted and cannot be read", l.filter, ErrDamaged, n, info.State.LastSeq, l.stream()))
	return nil
}
