package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/gateway/api"
	"github.com/almanac-events/almanac/internal/jsonout"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

func (a *app) timersExportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "export GROUP", Short: "Print the pending timers of a group as NDJSON", Args: arguments(1, 1),
		Long: `Print the pending timers of a group, one JSON object a line, as ` + "`timers import`" + ` takes
them: with URL, payload and policy, by due time. With a group of its own settings or slots
this moves timers there:

  almanac timers pause mails
  almanac timers groups apply mails2 --slots 1024
  almanac timers pause mails2
  almanac timers export mails > mails.ndjson
  almanac timers import mails2 < mails.ndjson
  almanac timers rm mails --exported < mails.ndjson
  almanac timers resume mails2

While both groups are paused no call begins. One that was claimed as the pause came is
still made: rm --exported names it while it is made, and counts it as over afterwards. Cancel such
timers in the new group before you resume it, or they are called twice.
A timer that was changed after the export is not cancelled, but named.`,
		Annotations: exits{exitPartial: "some timers are being called, and were not exported"}.declared(),
		RunE:        a.does(a.timersExport),
	}
}

func (a *app) timersExport(ctx context.Context, cmd *cobra.Command, args []string) error {
	return whenTimers(ctx, cmd, false, func(_ *session, t *timers.Timers) error {
		w := bufio.NewWriter(a.stdout)
		n := int64(0)
		firing, err := t.Export(ctx, args[0], func(tm *timers.Timer) error {
			if tm.URL == "" {
				return fmt.Errorf("the record with the URL of timer %q is gone; `almanac timers rm %s %s` cancels it, then export again", tm.ID, args[0], tm.ID)
			}
			n++
			return jsonout.Write(w, api.ExportTimer(tm))
		})
		if err = errors.Join(err, w.Flush()); err != nil {
			return err
		}
		a.note("%s exported", plural(n, "timer"))
		if firing > 0 {
			a.note("%s being called and not exported; pause the group, wait until none is, and export again", plural(int64(firing), "timer"))
			return errPartial
		}
		return nil
	})
}

// timersRemoveExported cancels the timers of an export that are as they were then.
func (a *app) timersRemoveExported(ctx context.Context, cmd *cobra.Command, group string) error {
	return whenTimers(ctx, cmd, false, func(c *session, t *timers.Timers) error {
		a.tellTarget(c)
		did := func(cancelled, over, refused int64) string {
			return fmt.Sprintf("%s cancelled, %d over, %s refused", plural(cancelled, "timer"), over, plural(refused, "line"))
		}
		return a.eachLine(ctx, cmd, api.MaxTimerBody, did, func(ctx context.Context, line []byte) (lineFate, error) {
			id, from, err := api.ParseExported(line)
			if err == nil && from.Group != group {
				err = fmt.Errorf("%w: timer %q was exported from group %q", schemas.ErrRequest, id, from.Group)
			}
			inFlight := false
			if err == nil {
				inFlight, err = t.Delete(ctx, group, id, timers.IfRevision(from.Revision))
			}
			refused := new(timer.Refusal)
			switch {
			case err == nil && !inFlight:
				return lineCreated, nil
			case err == nil:
				return lineRefused, fmt.Errorf("timer %q is being called at this moment; it gets no more attempts", id)
			case errors.As(err, &refused) && refused.Code == timer.CodeNotFound:
				return lineExists, nil
			case errors.Is(err, schemas.ErrRequest), errors.As(err, &refused) && refused.Code != timer.CodeUnknownGroup:
				return lineRefused, err
			}
			return lineFailed, err
		})
	})
}
