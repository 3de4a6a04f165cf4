package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/gateway/api"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

func (a *app) timersImportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "import GROUP", Short: "Create the timers that stdin has as NDJSON", Args: arguments(1, 1),
		Long: `Create the timers that stdin has, one JSON object a line, each as POST
/v1/timers/GROUP takes it: id, execute_at, callback_url, payload, retry_policy …, or
executeAt, callbackUrl and so on. A line whose timer exists with the same content is
left alone and counted, so that an import may be run again.`,
		Annotations: linesRefused.declared(),
		Example: `  almanac timers import mails < timers.ndjson
  echo '{"id":"welcome-17","execute_at":"+2h","callback_url":"https://hooks.example.com/"}' | almanac timers import mails`,
		RunE: a.does(a.timersImport),
	}
}

func (a *app) timersImport(ctx context.Context, cmd *cobra.Command, args []string) error {
	return whenTimers(ctx, cmd, false, func(_ *session, t *timers.Timers) error {
		return a.importLines(ctx, cmd, "timer", api.MaxTimerBody, func(ctx context.Context, line []byte) (lineFate, error) {
			now, err := t.Now(ctx)
			if err != nil {
				return lineFailed, err
			}
			n, err := api.ParseTimer(line, args[0], now)
			created := false
			if err == nil {
				_, created, err = t.Create(ctx, n)
			}
			refused := new(timer.Refusal)
			switch {
			case err == nil && created:
				return lineCreated, nil
			case err == nil:
				return lineExists, nil
			case errors.Is(err, schemas.ErrRequest), errors.As(err, &refused) && refused.Code != timer.CodeUnknownGroup:
				return lineRefused, err
			}
			return lineFailed, err
		})
	})
}
