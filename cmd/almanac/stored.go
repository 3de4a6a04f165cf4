package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/query"
)

// waitFlag is --wait.
func waitFlag(cmd *cobra.Command) (time.Duration, error) {
	text, _ := cmd.Flags().GetString("wait")
	stall, ok := parseSpan(text)
	if !ok {
		return 0, usageError{fmt.Errorf("--wait %q is not a length of time, such as 15s", text)}
	}
	return stall, nil
}

// waitTopics waits for what some topics accepted to be stored, as long as there is progress,
// and says when some of it is not.
func (a *app) waitTopics(ctx context.Context, r *query.Reader, topics []string, stall time.Duration) (short bool, err error) {
	if len(topics) == 0 || stall <= 0 {
		return false, nil
	}
	tell, began, drawn := func(uint64) {}, time.Now(), false
	if terminal(a.stderr) {
		tell = func(pending uint64) {
			if time.Since(began) > progressEvery {
				drawn = true
				_, _ = fmt.Fprintf(a.stderr, clearLine+"waiting until about %s stored", plural(pending, "event"))
			}
		}
	}
	pending, err := r.WaitStored(ctx, topics, stall, tell)
	if drawn {
		_, _ = fmt.Fprint(a.stderr, clearLine)
	}
	if err != nil || pending == 0 {
		return false, err
	}
	a.note("the answer is short: about %s of %s, accepted before the statement, not stored yet, and none was stored for %s. `almanac doctor` says what is wrong; `almanac query` sees them",
		plural(pending, "event"), strings.Join(topics, ", "), stall)
	return true, nil
}

// whenStored opens the servers, waits as --wait says until what a topic accepted is stored,
// and calls f. short says that some of it is not stored.
func (a *app) whenStored(ctx context.Context, cmd *cobra.Command, topic string, f func(c *session, r *query.Reader, short bool) error) error {
	stall, err := waitFlag(cmd)
	if err != nil {
		return err
	}
	return whenOpen(ctx, cmd, func(c *session, r *query.Reader) error {
		short, err := a.waitTopics(ctx, r, []string{topic}, stall)
		if err != nil {
			return err
		}
		return f(c, r, short)
	})
}

// answerOf prints, by f, what is asked of a topic once what it accepted is stored. It returns
// errPartial for an answer without the rest.
func (a *app) answerOf(ctx context.Context, cmd *cobra.Command, topic string, f func(*query.Reader) error) error {
	return a.whenStored(ctx, cmd, topic, func(_ *session, r *query.Reader, short bool) error {
		err := f(r)
		if err == nil && short {
			return errPartial
		}
		return err
	})
}
