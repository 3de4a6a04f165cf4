package pool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A request gives up within seconds of when nothing can be stored any more, and goes on while something can.
func TestWhileStoring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("the disk is full")
		began := time.Now()
		storing := func() error {
			if time.Since(began) < 10*time.Second {
				return nil
			}
			return full
		}
		ctx, giveUp := context.WithCancelCause(t.Context())
		stop := WhileStoring(ctx, storing, giveUp)
		<-ctx.Done()
		stop()
		if took := time.Since(began); !errors.Is(context.Cause(ctx), full) || took < 10*time.Second || took > 12*time.Second {
			t.Errorf("gave up after %s: %v", took, context.Cause(ctx))
		}
	})
}
