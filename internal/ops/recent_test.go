package ops

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A thousand that ask at once cost one question, also where the first goes away; a later one is asked again.
func TestReadinessIsAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		ask := func(ctx context.Context) []Reason {
			asked++
			time.Sleep(time.Second)
			if ctx.Err() != nil {
				return []Reason{Because(Away, "gone")}
			}
			return nil
		}
		of := shared(ask)
		gone, leave := context.WithCancel(t.Context())
		for i := range 1000 {
			ctx := t.Context()
			if i == 0 {
				ctx = gone
			}
			go func() {
				if reasons := of(ctx); len(reasons) > 0 {
					t.Errorf("%q", reasons)
				}
			}()
			synctest.Wait()
		}
		leave()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		if of(t.Context()); asked != 2 {
			t.Errorf("later it was asked %d times", asked)
		}
	})
}
